//! Removes candle's path to its allocator and the call of a body by `#[mem_test]`.

use super::frame::{Frame, is_closure, plain};
use super::{Owner, TEST};

/// Functions that candle's backends allocate through.
const ALLOCATORS: [&str; 4] = ["alloc", "alloc_uninit", "alloc_zeros", "map"];
/// The name of the function that a candle kernel is written in.
const KERNEL: &str = "f";

/// They stay if no other is left: an inlined body without line tables has only the attribute's.
pub(super) fn trim(frames: &mut Vec<(&Frame, Owner)>) {
    let has_body = frames.iter().any(|(frame, owner)| *owner == Owner::User && !is_glue(frame));
    while has_body && frames.last().is_some_and(|(frame, _)| is_glue(frame)) {
        frames.pop();
    }
    let of_candle = frames.iter().take_while(|(_, owner)| *owner == Owner::Candle);
    let allocating = of_candle.take_while(|(frame, _)| is_allocator(frame)).count();
    if allocating < frames.len() {
        frames.drain(..allocating);
    }
}

/// True for a closure of the static that `#[mem_test]` describes a test with.
pub(super) fn is_glue(frame: &Frame) -> bool {
    let plain = plain(&frame.function);
    plain.rsplit("::").find(|segment| !is_closure(segment)) == Some(TEST)
}

/// Of a frame of candle.
fn is_allocator(frame: &Frame) -> bool {
    let plain = plain(&frame.function);
    let method = plain.rsplit("::").find(|segment| !is_closure(segment)).unwrap_or_default();
    let of_backend = frame.function.contains("_backend::");
    method == KERNEL || of_backend && ALLOCATORS.contains(&method)
}

#[cfg(test)]
mod tests {
    use super::super::Stack;
    use super::super::tests::{CANDLE, frame};
    use super::*;

    fn trimmed(functions: &[(&str, &str)]) -> Vec<String> {
        let frames = functions.iter().enumerate().map(|(line, (function, file))| Frame {
            line: Some(line as u32),
            ..frame(function, file)
        });
        Stack::trimmed(frames).frames.iter().map(Frame::short).collect()
    }

    #[test]
    fn frames_of_the_allocator_and_of_the_attribute_are_hidden() {
        let stack = [
            ("candle_core::cuda_backend::device::alloc<f32>", CANDLE),
            ("<T as candle_core::cuda_backend::utils::Map1>::map", CANDLE),
            ("candle_core::cuda_backend::f<f32>", CANDLE),
            ("candle_core::tensor::Tensor::map", CANDLE),
            ("candle_core::tensor::Tensor::exp", CANDLE),
            ("app::map", "tests/mem.rs"),
            ("app::test::body", "tests/mem.rs"),
            ("app::test::__MEM_TEST::{{closure}}::{{closure}}", "tests/mem.rs"),
            ("memcheck_runtime::trial::Trial::iterate", "memcheck-runtime/src/trial.rs"),
            ("app::test::__MEM_TEST::{closure#0}", "tests/mem.rs"),
        ];
        assert_eq!(trimmed(&stack), ["Tensor::map", "Tensor::exp", "map", "body"]);
    }

    #[test]
    fn a_stack_with_only_such_frames_is_kept() {
        let inlined = [
            ("candle_core::tensor::Tensor::exp", CANDLE),
            ("app::test::__MEM_TEST::{{closure}}", "tests/mem.rs"),
        ];
        assert_eq!(trimmed(&inlined), ["Tensor::exp", "__MEM_TEST"]);
        assert_eq!(trimmed(&[("candle_core::cpu_backend::f", CANDLE)]), ["f"]);
    }
}
