//! What is still live when the body has returned, by place.

use crate::attribution::{Holder, Place, Survivors};
use crate::stack::Stack;

use super::Evidence;

/// Bytes of one place that are live after the body has returned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leftover<'a> {
    /// The bytes.
    pub(super) holder: &'a Holder,
    /// Where they were allocated.
    pub(super) stack: &'a Stack,
    /// Allocations of that line in that scope over the whole body, whatever
    /// the tensors were.
    pub(super) calls: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    place: &'a Place,
}

impl Leftover<'_> {
    /// Whether these survivors were allocated at the same place.
    pub(super) fn is_of(&self, survivors: &Survivors) -> bool {
        self.place.stack == survivors.stack && self.place.scope == survivors.scope
    }
}

/// What is left in a space, the largest first.
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
