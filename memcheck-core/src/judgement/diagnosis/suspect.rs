//! The survivors of one call site, in the form that the rules examine.

use crate::growth::survivors::Reading;
use crate::measurement::attribution::{Attribution, Survivors};
use crate::measurement::stack::Stack;
use crate::space::Space;

use super::sites::SiteSums;

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
    /// The only dimension in which the tensors of their call site differ, over the whole body.
    pub(super) dimension: Option<usize>,
    /// True if no two allocations of their call site, over the whole body, are alike.
    pub(super) allocates_each_type_once: bool,
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
        let in_frame = |word: &str| {
            let mut frames = self.stack.frames.iter();
            frames.any(|frame| frame.function.to_lowercase().contains(word))
        };
        words.iter().any(|word| scope.contains(word) || in_frame(word))
    }
}

/// The survivors of `space` with their readings, the fastest growing first.
pub fn suspects(attribution: &Attribution, space: Space) -> Vec<Suspect<'_>> {
    let sums = SiteSums::of(&attribution.places);
    let mut suspects: Vec<Suspect<'_>> = attribution
        .survivors
        .iter()
        .filter(|survivors| survivors.space == space)
        .map(|survivors| {
            let sum = sums.get(space, survivors.stack, &survivors.scope);
            Suspect {
                survivors,
                stack: attribution.stacks.get(survivors.stack).unwrap_or(Stack::EMPTY),
                reading: survivors.group.reading,
                calls: sum.last_calls,
                dimension: sum.dimension(),
                allocates_each_type_once: sum.types > 0 && sum.types == sum.calls,
            }
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
