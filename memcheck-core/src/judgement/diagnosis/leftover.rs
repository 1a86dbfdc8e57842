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
    let mut leftovers: Vec<Leftover<'a>> = attribution
        .retained
        .iter()
        .filter_map(|holder| Some((holder, attribution.places.get(holder.place)?)))
        .filter(|(_, place)| place.space == evidence.space)
        .map(|(holder, place)| {
            let SiteSum { calls, bytes, .. } = sums.get(place.space, place.stack, &place.scope);
            Leftover { holder, stack: attribution.stack_of(place), calls, bytes, place }
        })
        .collect();
    leftovers.sort_by_key(|leftover| std::cmp::Reverse(leftover.holder.bytes));
    leftovers
}
