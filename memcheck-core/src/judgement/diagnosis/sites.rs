//! The allocations of each call stack in each scope, summed over tensor types. An attribution can
//! have a hundred thousand places, so that a search for each survivor would take hours.

use std::collections::HashMap;

use crate::measurement::attribution::Place;
use crate::space::Space;

/// The allocations of one call stack in one scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SiteSum {
    /// Over the whole body.
    pub(super) calls: u64,
    pub(super) bytes: u64,
    /// In the last iteration that has some.
    pub(super) last_calls: u64,
    last: u32,
}

#[derive(Debug)]
pub(super) struct SiteSums<'a>(HashMap<(Space, usize, &'a str), SiteSum>);

impl<'a> SiteSums<'a> {
    /// Visits each place once.
    pub(super) fn of(places: impl IntoIterator<Item = &'a Place>) -> Self {
        let mut sums: HashMap<(Space, usize, &'a str), SiteSum> = HashMap::new();
        for place in places {
            let sum = sums.entry((place.space, place.stack, &place.scope)).or_default();
            sum.calls += place.calls;
            sum.bytes += place.bytes;
            if place.last > sum.last {
                (sum.last, sum.last_calls) = (place.last, 0);
            }
            if place.last == sum.last {
                sum.last_calls += place.last_calls;
            }
        }
        Self(sums)
    }

    pub(super) fn get(&self, space: Space, stack: usize, scope: &str) -> SiteSum {
        self.0.get(&(space, stack, scope)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_those_of_the_last_iteration_and_of_the_whole_body() {
        let place = |stack, last, last_calls| Place {
            space: Space::Host,
            stack,
            scope: "model".to_owned(),
            operation: None,
            tensor: None,
            calls: 10,
            bytes: 80,
            last_calls,
            last_bytes: 8,
            last,
        };
        let places =
            [place(0, 7, 2), place(0, 9, 3), place(1, 9, 5), place(0, 9, 4), place(0, 8, 6)];
        let sums = SiteSums::of(&places);
        let sum = sums.get(Space::Host, 0, "model");
        assert_eq!((sum.calls, sum.bytes, sum.last_calls), (40, 320, 7));
        assert_eq!(sums.get(Space::Host, 1, "model").last_calls, 5);
        assert_eq!(sums.get(Space::Host, 0, "other"), SiteSum::default());
        assert_eq!(sums.get(Space::HostSmall, 0, "model"), SiteSum::default());
    }
}
