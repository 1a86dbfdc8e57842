//! The free ranges of a region of addresses.

use std::collections::{BTreeMap, BTreeSet};

/// Free ranges, of which no two touch.
#[derive(Debug)]
pub(crate) struct Gaps {
    /// From start to length.
    ranges: BTreeMap<u64, u64>,
    /// The same ranges as (length, start).
    by_length: BTreeSet<(u64, u64)>,
}

impl Gaps {
    /// A region that is free.
    pub(crate) fn new(start: u64, length: u64) -> Self {
        Self {
            ranges: BTreeMap::from([(start, length)]),
            by_length: BTreeSet::from([(length, start)]),
        }
    }

    /// Takes `length` from the start of the smallest gap that fits, the lowest of several such
    /// gaps. `None` if none fits.
    pub(crate) fn take(&mut self, length: u64) -> Option<u64> {
        let &(gap, start) = self.by_length.range((length, 0)..).next()?;
        self.remove(start, gap);
        if gap > length {
            self.insert(start + length, gap - length);
        }
        Some(start)
    }

    /// Makes a range free again.
    pub(crate) fn give_back(&mut self, mut start: u64, mut length: u64) {
        if let Some((&before, &bytes)) = self.ranges.range(..start).next_back()
            && before + bytes == start
        {
            self.remove(before, bytes);
            (start, length) = (before, bytes + length);
        }
        if let Some(&bytes) = self.ranges.get(&(start + length)) {
            self.remove(start + length, bytes);
            length += bytes;
        }
        self.insert(start, length);
    }

    fn insert(&mut self, start: u64, length: u64) {
        self.ranges.insert(start, length);
        self.by_length.insert((length, start));
    }

    fn remove(&mut self, start: u64, length: u64) {
        self.ranges.remove(&start);
        self.by_length.remove(&(length, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_gap_is_taken_and_gaps_that_touch_are_one() {
        let mut gaps = Gaps::new(100, 1000);
        assert_eq!([1, 20, 3, 40].map(|length| gaps.take(length)), [100, 101, 121, 124].map(Some));
        gaps.give_back(101, 20);
        assert_eq!(gaps.take(21), Some(164));
        assert_eq!(gaps.take(4), Some(101));
        for (start, length) in [(100, 1), (124, 40), (101, 4), (164, 21), (121, 3)] {
            gaps.give_back(start, length);
        }
        assert_eq!(gaps.ranges, BTreeMap::from([(100, 1000)]));
        assert_eq!(gaps.by_length, BTreeSet::from([(1000, 100)]));
        assert_eq!(gaps.take(1001), None);
    }
}
