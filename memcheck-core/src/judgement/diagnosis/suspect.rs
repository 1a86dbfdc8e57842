//! The survivors of one call site, in the form that the rules examine.

use crate::growth::survivors::Reading;
use crate::measurement::attribution::{Attribution, Survivors};
use crate::measurement::stack::Stack;
use crate::space::Space;

/// The survivors of one call site, with their reading.
#[derive(Debug, Clone, Copy)]
pub struct Suspect<'a> {
    /// The survivors.
    pub survivors: &'a Survivors,
    /// Their call stack.
    pub stack: &'a Stack,
    /// Their pattern of growth and its rate.
    pub reading: Reading,
    /// Allocations of their call site in the last iteration that it allocated in.
    pub calls: u64,
}

impl Suspect<'_> {
    /// True if it continues to grow.
    pub fn grows(&self) -> bool {
        self.reading.grows()
    }

    pub(super) fn mostly(&self, blocks: u64) -> bool {
        blocks > 0 && 2 * blocks >= self.survivors.group.count()
    }

    pub(super) fn operation(&self) -> String {
        self.stack.operation().unwrap_or_default()
    }

    pub(super) fn is_tensor(&self) -> bool {
        let held = &self.survivors.held;
        held.whole + held.views > 0 || !self.survivors.tensors.is_empty()
    }

    pub(super) fn mentions(&self, words: &[&str]) -> bool {
        let scope = self.survivors.scope.to_lowercase();
        words.iter().any(|word| {
            scope.contains(word)
                || self
                    .stack
                    .frames
                    .iter()
                    .any(|frame| frame.function.to_lowercase().contains(word))
        })
    }
}

/// The survivors of `space` with their readings, the fastest growing first.
pub fn suspects(attribution: &Attribution, space: Space) -> Vec<Suspect<'_>> {
    const EMPTY: &Stack = &Stack { frames: Vec::new() };
    let mut suspects: Vec<Suspect<'_>> = attribution
        .survivors
        .iter()
        .filter(|survivors| survivors.space == space)
        .map(|survivors| Suspect {
            survivors,
            stack: attribution.stacks.get(survivors.stack).unwrap_or(EMPTY),
            reading: survivors.group.reading,
            calls: last_calls(attribution, survivors),
        })
        .collect();
    suspects.sort_by(|a, b| {
        let size = |suspect: &Suspect<'_>| {
            (suspect.reading.bytes_per_iteration, suspect.survivors.group.bytes())
        };
        size(b).cmp(&size(a)).then_with(|| a.stack.sorted_by().cmp(&b.stack.sorted_by()))
    });
    suspects
}

/// Allocations in the last iteration that has some. All tensor types count.
fn last_calls(attribution: &Attribution, survivors: &Survivors) -> u64 {
    let places = || {
        attribution.places.iter().filter(|place| {
            place.space == survivors.space
                && place.stack == survivors.stack
                && place.scope == survivors.scope
        })
    };
    let last = places().map(|place| place.last).max();
    places().filter(|place| Some(place.last) == last).map(|place| place.last_calls).sum()
}
