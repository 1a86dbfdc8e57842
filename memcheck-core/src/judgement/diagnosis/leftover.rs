//! Memory that is still live when the body has returned, by call site.

use crate::measurement::attribution::{Holder, Place};
use crate::measurement::stack::Stack;

use super::Evidence;
use super::sites::{SiteSum, SiteSums};

/// The bytes of one call site that are live after the body has returned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leftover<'a> {
    pub(super) holder: &'a Holder,
    pub(super) stack: &'a Stack,
    /// Allocations of that stack in that scope over the whole body. All tensor types count.
    pub(super) calls: u64,
    pub(super) bytes: u64,
    /// The bytes of all call sites together.
    pub(super) all_bytes: u64,
    place: &'a Place,
}

impl<'a> Leftover<'a> {
    /// Its call stack and its scope.
    pub(super) fn site(&self) -> (usize, &'a str) {
        (self.place.stack, &self.place.scope)
    }
}

pub(super) fn leftovers<'a>(evidence: &Evidence<'a>) -> Vec<Leftover<'a>> {
    let Some(attribution) = evidence.attribution else { return Vec::new() };
    let sums = SiteSums::of(&attribution.places);
    let of_space = || {
        let placed = |holder: &'a Holder| Some((holder, attribution.places.get(holder.place)?));
        let holders = attribution.retained.iter().filter_map(placed);
        holders.filter(|(_, place)| place.space == evidence.space)
    };
    let all_bytes = of_space().fold(0, |all: u64, (of, _)| all.saturating_add(of.bytes));
    let mut leftovers: Vec<Leftover<'a>> = of_space()
        .map(|(holder, place)| {
            let SiteSum { calls, bytes, .. } = sums.get(place.space, place.stack, &place.scope);
            let stack = attribution.stack_of(place);
            Leftover { holder, stack, calls, bytes, all_bytes, place }
        })
        .collect();
    leftovers.sort_by_key(|leftover| std::cmp::Reverse(leftover.holder.bytes));
    leftovers
}
