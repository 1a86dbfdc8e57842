//! Call stacks in readable form: the owner of each frame, the frames that are shown, and the candle
//! operation. The caller must resolve addresses first.

mod backtrace;
mod c_functions;
mod ends;
mod frame;
mod operation;
mod owner;
mod passage;
mod sources;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

pub use backtrace::{program_calls, program_frames};
pub use frame::Frame;
use frame::plain;
pub use owner::Owner;
pub(crate) use passage::FrameMark;
pub use passage::Passage;
pub use sources::Sources;

pub use memcheck_limits::TEST;

/// A call stack without plumbing, the innermost frame first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stack {
    /// The frames.
    pub frames: Vec<Frame>,
    /// The number of outermost frames that are outside of an iteration: the line that calls
    /// `Trial::iterate`, and its callers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outside: usize,
    /// What the call passed through in frames that are not shown, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<Passage>,
}

/// Inlining and closures repeat a line, which is shown once. A closure on the line that calls the
/// iteration is a part of that call, unless no other line of the program is inside of the iteration.
fn without_repeats(
    frames: Vec<(&Frame, Owner)>,
    is_outer: impl Fn(&Frame) -> bool,
) -> Vec<(&Frame, Owner)> {
    let mut kept: Vec<(&Frame, Owner)> = Vec::new();
    for (frame, owner) in frames {
        let is_same = |last: &Frame| (&last.file, last.line) == (&frame.file, frame.line);
        let repeated = kept.last().filter(|(last, _)| frame.file.is_some() && is_same(last));
        let is_call = repeated.is_some_and(|(last, _)| is_outer(frame) && !is_outer(last));
        let inside = &kept[..kept.len().saturating_sub(1)];
        let is_only_line = || inside.iter().all(|(_, owner)| *owner != Owner::User);
        if repeated.is_none() {
            kept.push((frame, owner));
        } else if is_call && !is_only_line() {
            kept.pop();
            kept.push((frame, owner));
        }
    }
    kept
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Stack {
    /// A stack without frames.
    pub(crate) const EMPTY: &Self = &Self { frames: Vec::new(), outside: 0, through: Vec::new() };

    /// Keeps the frames of the program, candle and libraries, without those outside of the
    /// program's outermost frame and those at both ends that are the same in every stack.
    ///
    /// If C code has allocated, its functions without debug information are kept too.
    pub fn trimmed(frames: impl IntoIterator<Item = Frame>) -> Self {
        let frames: Vec<Frame> = frames.into_iter().collect();
        Self::trimmed_of(frames.iter().map(|frame| (frame, frame.owner(), frame.mark())).collect())
    }

    /// [`Stack::trimmed`] of frames whose owners and marks are known. Stacks share most frames, so
    /// that the caller can find them once for each.
    pub(crate) fn trimmed_of(all: Vec<(&Frame, Owner, Option<FrameMark>)>) -> Self {
        let (outside, through) = passage::passages(&all);
        let outer: HashSet<*const Frame> = all[all.len() - outside..]
            .iter()
            .map(|(frame, ..)| std::ptr::from_ref(*frame))
            .collect();
        let mut frames: Vec<(&Frame, Owner)> =
            all.into_iter().map(|(frame, owner, _)| (frame, owner)).collect();
        let c_functions = c_functions::allocating(&frames);
        frames.retain(|(_, owner)| *owner != Owner::Plumbing);
        if let Some(outermost) = frames.iter().rposition(|(_, owner)| *owner == Owner::User) {
            frames.truncate(outermost + 1);
        }
        let is_outer = |frame: &Frame| outer.contains(&std::ptr::from_ref(frame));
        let mut frames = without_repeats(frames, is_outer);
        ends::trim(&mut frames);
        let outside = frames.iter().rev().take_while(|(frame, _)| is_outer(frame)).count();
        let frames = frames.into_iter().map(|(frame, _)| frame.clone());
        Self { frames: c_functions.into_iter().chain(frames).collect(), outside, through }
    }

    /// Adds what another call with the same frames passed through.
    pub(crate) fn join(&mut self, other: Self) {
        self.outside = self.outside.min(other.outside);
        self.through.extend(other.through);
        self.through.sort();
        self.through.dedup();
    }

    /// The frames of one iteration: those of the body and its callers are left out.
    pub fn of_iteration(&self) -> &[Frame] {
        &self.frames[..self.frames.len().saturating_sub(self.outside)]
    }

    /// The innermost frame of the program: the line to look at.
    pub fn user(&self) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.owner() == Owner::User)
    }

    /// The innermost line of a dependency that allocated for the program, candle-core and candle-nn
    /// excepted: [`Stack::operation`] names their functions.
    pub fn dependency(&self) -> Option<&Frame> {
        let called = self.frames.iter().take_while(|frame| frame.owner() != Owner::User);
        let mut dependencies = called.filter(|frame| match frame.owner() {
            Owner::Library => true,
            Owner::Candle => !matches!(frame.krate(), "candle_core" | "candle_nn"),
            Owner::User | Owner::Plumbing => false,
        });
        dependencies.find(|frame| frame.line.is_some())
    }

    /// True if `Tensor::backward` or a function of its module is on the stack.
    pub fn is_backward(&self) -> bool {
        self.calls("candle_core::backprop::")
    }

    /// True if a function of an optimizer is on the stack.
    pub fn is_optimizer(&self) -> bool {
        self.calls("candle_nn::optim::")
    }

    /// True if candle allocates a workspace, which it keeps for each device.
    pub fn is_workspace(&self) -> bool {
        let mut frames = self.frames.iter();
        frames.any(|frame| frame.owner() == Owner::Candle && frame.function.contains("workspace"))
    }

    /// True if a function whose path starts with `prefix` is on the stack.
    pub fn calls(&self, prefix: &str) -> bool {
        // To parse a name takes longer than to find a crate and its module in it.
        let module = prefix.match_indices("::").nth(1).map_or(prefix, |(end, _)| &prefix[..end]);
        let mut in_module = self.frames.iter().filter(|frame| frame.function.contains(module));
        in_module.any(|frame| plain(&frame.function).starts_with(prefix))
    }

    /// A sort key of names only, so that the order is the same in every run.
    pub fn sorted_by(&self) -> Vec<(&str, Option<&str>, Option<u32>)> {
        self.frames
            .iter()
            .map(|frame| (frame.function.as_str(), frame.file.as_deref(), frame.line))
            .collect()
    }

    /// True if a frame has a line. Without line tables no frame has one.
    pub fn has_lines(&self) -> bool {
        self.frames.iter().any(|frame| frame.line.is_some())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn frame(function: &str, file: &str) -> Frame {
        let file = (!file.is_empty()).then(|| file.to_owned());
        Frame { function: function.to_owned(), line: file.as_ref().map(|_| 7), file }
    }

    pub(crate) const CANDLE: &str =
        "/home/u/.cargo/registry/src/index/candle-core-0.11.1/src/tensor.rs";

    #[test]
    fn the_closure_of_a_static_names_it() {
        let of = |function| frame(function, "").initialized_static();
        assert_eq!(of("model::MASKS_2::{{closure}}").as_deref(), Some("model::MASKS_2"));
        assert_eq!(
            of("<model::Gpt as M>::MASKS::{{closure}}").as_deref(),
            Some("model::Gpt::MASKS")
        );
        for other in
            ["model::MASKS", "MASKS::{{closure}}", "model::masks::{{closure}}", "a::_::{{closure}}"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_closure_has_the_name_of_the_function_that_it_is_in() {
        let path = |function| frame(function, "").path();
        for closure in ["mem::step::body::{{closure}}", "mem::step::{{closure}}::body::{closure#0}"]
        {
            assert_eq!(path(closure), "mem::step::body");
        }
        assert_eq!(path("mem::closures::step"), "mem::closures::step");
        assert_eq!(path("{{closure}}"), "{{closure}}", "it has no other name");
    }

    #[test]
    fn a_stack_shows_only_the_program_and_candle() {
        let stack = Stack::trimmed([
            frame("memcheck_ledger::site::unwind::here", "memcheck-ledger/src/site/unwind.rs"),
            frame("alloc::alloc::alloc", "/rustc/ab/library/alloc/src/alloc.rs"),
            frame("candle_core::tensor::Tensor::matmul", CANDLE),
            frame("app::attention", "src/model.rs"),
            frame("app::attention", "src/model.rs"),
            frame("app::step", "src/main.rs"),
            frame(
                "tokio::runtime::enter",
                "/home/u/.cargo/registry/src/i/tokio-1.0.0/src/runtime/mod.rs",
            ),
            frame("core::ops::function::FnOnce::call_once", "/rustc/ab/library/core/src/f.rs"),
        ]);
        let functions: Vec<_> = stack.frames.iter().map(|frame| frame.short()).collect();
        assert_eq!(functions, ["Tensor::matmul", "attention", "step"]);
        assert_eq!(stack.user().unwrap().place().as_deref(), Some("src/model.rs:7"));
        // A stack without a frame of the program keeps its outer frames.
        let library = frame("tower::call", "/home/u/.cargo/registry/src/i/tower-1/src/lib.rs");
        assert_eq!(Stack::trimmed([library.clone()]).frames, [library]);
    }
}
