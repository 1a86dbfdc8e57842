//! Searches for the largest value that has room.
//!
//! A search is pure: it returns the value to try next, and the caller reports if that value had
//! room. The search assumes that every value below one that had room has room too. It ends when the
//! largest value that had room and the next value, which had none, have both been tried. A caller
//! that can predict the result should pass its prediction, which saves tries if it is right. A
//! wrong prediction does not change the result.

use std::ops::RangeInclusive;

/// The first value of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The smallest value. The search doubles it while there is room.
    Lowest,
    /// The largest value. The search halves it until a value has room.
    Highest,
}

/// The error of a range that has no values to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The range begins at 0, and a batch of 0 is not a batch.
    #[error("0 cannot be tried: begin the search at 1 or more")]
    Zero,
    /// The ends are in the wrong order.
    #[error("no value to try: {from} is above {to}")]
    Empty {
        /// The smallest value.
        from: u64,
        /// The largest value.
        to: u64,
    },
}

/// A search and its results so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    range: RangeInclusive<u64>,
    start: Start,
    /// The largest value that had room.
    passed: Option<u64>,
    /// The smallest value that had no room.
    failed: Option<u64>,
    /// The predicted result: the largest value that has room.
    expected: Option<u64>,
}

impl Search {
    /// Creates a search over these values.
    ///
    /// # Errors
    /// If the range is empty or contains 0.
    pub fn new(range: RangeInclusive<u64>, start: Start) -> Result<Self, RangeError> {
        let (from, to) = (*range.start(), *range.end());
        match () {
            () if from == 0 => Err(RangeError::Zero),
            () if from > to => Err(RangeError::Empty { from, to }),
            () => Ok(Self { range, start, passed: None, failed: None, expected: None }),
        }
    }

    /// Sets a prediction of the largest value that has room.
    pub fn expect(&mut self, value: u64) {
        self.expected = Some(value.clamp(*self.range.start(), *self.range.end()));
    }

    /// Returns the predicted value, or its neighbor, which must be tried to confirm it.
    fn next_to_confirm(&self) -> Option<u64> {
        let expected = self.expected?;
        let (lowest, highest) = (*self.range.start(), *self.range.end());
        let is_open = |value: &u64| {
            (lowest..=highest).contains(value)
                && self.passed.is_none_or(|passed| passed < *value)
                && self.failed.is_none_or(|failed| *value < failed)
        };
        let next = match (self.passed, self.failed) {
            (Some(passed), _) if passed == expected => expected.checked_add(1),
            (_, Some(failed)) if failed == expected => expected.checked_sub(1),
            _ => Some(expected),
        };
        next.filter(is_open)
    }

    /// Returns the value to try next; `None` if the search has ended.
    pub fn next(&self) -> Option<u64> {
        let (lowest, highest) = (*self.range.start(), *self.range.end());
        if let Some(value) = self.next_to_confirm() {
            return Some(value);
        }
        match (self.passed, self.failed) {
            (None, None) => Some(match self.start {
                Start::Lowest => lowest,
                Start::Highest => highest,
            }),
            (Some(passed), None) if passed == highest => None,
            (Some(passed), None) => Some(passed.saturating_mul(2).min(highest)),
            (None, Some(failed)) if failed == lowest => None,
            (None, Some(failed)) => Some((failed / 2).max(lowest)),
            (Some(passed), Some(failed)) if failed - passed <= 1 => None,
            (Some(passed), Some(failed)) => Some(passed + (failed - passed) / 2),
        }
    }

    /// Records if there was room for `value`.
    pub fn tried(&mut self, value: u64, has_room: bool) {
        if has_room {
            self.passed = self.passed.max(Some(value));
        } else {
            self.failed = Some(self.failed.map_or(value, |failed| failed.min(value)));
        }
    }

    /// Returns the largest value that had room.
    pub fn largest(&self) -> Option<u64> {
        self.passed
    }

    /// Returns the smallest value that had no room.
    pub fn failed(&self) -> Option<u64> {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the values that are tried if values up to `limit` have room, and the search after
    /// them.
    fn run(range: RangeInclusive<u64>, start: Start, limit: u64) -> (Vec<u64>, Search) {
        let mut search = Search::new(range, start).unwrap();
        let mut tried = Vec::new();
        while let Some(value) = search.next() {
            tried.push(value);
            search.tried(value, value <= limit);
        }
        (tried, search)
    }

    #[test]
    fn every_limit_is_found_exactly_from_either_end() {
        for start in [Start::Lowest, Start::Highest] {
            for limit in 0..=40 {
                let (tried, search) = run(1..=32, start, limit);
                let largest = (limit > 0).then_some(limit.min(32));
                assert_eq!(search.largest(), largest, "{start:?} {limit}");
                assert_eq!(search.failed(), (limit < 32).then_some(limit + 1), "{start:?} {limit}");
                // Both ends of the answer were tried, and no value was tried twice.
                assert!(largest.is_none_or(|largest| tried.contains(&largest)));
                assert!(search.failed().is_none_or(|failed| tried.contains(&failed)));
                let mut once = tried.clone();
                once.sort_unstable();
                once.dedup();
                assert_eq!(once.len(), tried.len(), "{tried:?}");
            }
        }
    }

    #[test]
    fn it_doubles_up_or_halves_and_then_bisects() {
        assert_eq!(run(1..=1000, Start::Lowest, 11).0, [1, 2, 4, 8, 16, 12, 10, 11]);
        assert_eq!(run(1..=64, Start::Highest, 11).0, [64, 32, 16, 8, 12, 10, 11]);
        assert_eq!(run(3..=10, Start::Lowest, 10).0, [3, 6, 10]);
        assert_eq!(run(3..=10, Start::Highest, 10).0, [10]);
    }

    #[test]
    fn a_right_prediction_saves_tries_and_a_wrong_one_changes_nothing() {
        for limit in 0..=32_u64 {
            for expected in 0..=40 {
                let mut search = Search::new(1..=32, Start::Lowest).unwrap();
                search.expect(expected);
                let mut tried = Vec::new();
                while let Some(value) = search.next() {
                    assert!(!tried.contains(&value), "{value} twice in {tried:?}");
                    tried.push(value);
                    search.tried(value, value <= limit);
                }
                assert_eq!(search.largest(), (limit > 0).then_some(limit), "{limit} {expected}");
                assert_eq!(
                    search.failed(),
                    (limit < 32).then_some(limit + 1),
                    "{limit} {expected}"
                );
                if expected == limit && limit > 0 {
                    assert!(tried.len() <= 2, "{tried:?}");
                }
            }
        }
    }

    #[test]
    fn an_empty_range_and_a_range_from_0_are_errors() {
        assert_eq!(Search::new(0..=4, Start::Lowest), Err(RangeError::Zero));
        let empty = RangeInclusive::new(5, 4);
        let error = Search::new(empty, Start::Lowest).unwrap_err();
        assert_eq!(error.to_string(), "no value to try: 5 is above 4");
        // The full range of u64 must not overflow.
        assert_eq!(run(1..=u64::MAX, Start::Lowest, u64::MAX).1.largest(), Some(u64::MAX));
    }
}
