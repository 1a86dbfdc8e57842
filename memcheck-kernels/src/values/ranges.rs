//! A set of byte ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges of offsets. Two ranges must never overlap or touch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Ranges {
    /// From start to end.
    ends: BTreeMap<u64, u64>,
}

impl Ranges {
    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        if let Some((&before, &its_end)) = self.ends.range(..start).next_back()
            // A range that only touches is merged too.
            && its_end >= start
        {
            if its_end >= end {
                return;
            }
            start = before;
        }
        while let Some((&next, &its_end)) = self.ends.range(start..=end).next() {
            self.ends.remove(&next);
            end = end.max(its_end);
        }
        self.ends.insert(start, end);
    }

    pub(super) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some((_, end)) = self.ends.range_mut(..range.start).next_back()
            && *end > range.start
        {
            let rest = std::mem::replace(end, range.start);
            if rest > range.end {
                self.ends.insert(range.end, rest);
            }
        }
        while let Some((&start, &end)) = self.ends.range(range.clone()).next() {
            self.ends.remove(&start);
            if end > range.end {
                self.ends.insert(range.end, end);
            }
        }
    }

    pub(super) fn contains(&self, range: &Range<u64>) -> bool {
        let first = self.ends.range(..=range.start).next_back();
        range.is_empty() || first.is_some_and(|(_, &end)| end >= range.end)
    }

    /// Returns the parts of `range` that are in the set, in order.
    pub(super) fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        // A range that begins earlier can reach into this one.
        let before = self.ends.range(..range.start).next_back();
        let all = before.into_iter().chain(self.ends.range(range.clone()));
        all.map(move |(&start, &end)| start.max(range.start)..end.min(range.end))
            .filter(|part| !part.is_empty())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    const LENGTH: u64 = 24;

    fn flags(ranges: &Ranges) -> Vec<bool> {
        (0..LENGTH).map(|at| ranges.contains(&(at..at + 1))).collect()
    }

    #[test]
    fn touching_ranges_become_one() {
        let mut ranges = Ranges::default();
        ranges.insert(2..4);
        ranges.insert(6..8);
        assert!(!ranges.contains(&(2..8)));
        ranges.insert(4..6);
        assert!(ranges.contains(&(2..8)));
        assert_eq!(ranges.ends.len(), 1);
        assert_eq!(ranges.within(0..5).next(), Some(2..5));
        ranges.remove(3..5);
        assert_eq!(ranges.within(0..100).collect::<Vec<_>>(), [2..3, 5..8]);
        ranges.remove(0..100);
        assert!(ranges.is_empty());
    }

    proptest! {
        #[test]
        fn ranges_equal_a_flag_for_each_byte(
            steps in prop::collection::vec((any::<bool>(), 0..LENGTH, 0..LENGTH), 0..30)
        ) {
            let (mut ranges, mut expected) = (Ranges::default(), vec![false; LENGTH as usize]);
            for (inserted, a, b) in steps {
                let range = a.min(b)..a.max(b);
                expected[range.start as usize..range.end as usize].fill(inserted);
                if inserted { ranges.insert(range) } else { ranges.remove(range) }
                prop_assert_eq!(flags(&ranges), expected.clone());
                let inside: Vec<u64> = ranges.within(3..17).flatten().collect();
                let of_flags: Vec<u64> = (3..17).filter(|&at| expected[at as usize]).collect();
                prop_assert_eq!(inside, of_flags);
            }
            let starts: Vec<_> = ranges.ends.iter().collect();
            prop_assert!(starts.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
