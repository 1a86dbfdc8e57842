//! Memory that is still live when the body has returned, by call site.

use crate::measurement::attribution::{Holder, Place, Survivors};
use crate::measurement::stack::Stack;

use super::Evidence;

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

impl Leftover<'_> {
    pub(super) fn has_site_of(&self, survivors: &Survivors) -> bool {
        self.place.stack == survivors.stack && self.place.scope == survivors.scope
    }
}

pub(super) fn leftovers<'a>(evidence: &Evidence<'a>) -> Vec<Leftover<'a>> {
    let Some(attribution) = evidence.attribution else { return Vec::new() };
    let mut leftovers: Vec<Leftover<'a>> = attribution
        .retained
        .iter()
        .filter_map(|holder| Some((holder, attribution.places.get(holder.place)?)))
        .filter(|(_, place)| place.space == evidence.space)
        .map(|(holder, place)| {
            let alike = attribution.places.iter().filter(|other| {
                other.space == place.space
                    && other.stack == place.stack
                    && other.scope == place.scope
            });
            let (calls, bytes) = alike
                .fold((0, 0), |(calls, bytes), place| (calls + place.calls, bytes + place.bytes));
            Leftover { holder, stack: attribution.stack_of(place), calls, bytes, place }
        })
        .collect();
    leftovers.sort_by_key(|leftover| std::cmp::Reverse(leftover.holder.bytes));
    leftovers
}
