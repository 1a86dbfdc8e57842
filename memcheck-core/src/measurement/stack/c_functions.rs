//! Functions of C code without debug information. They have a name and neither a file nor a line.

use super::Owner;
use super::frame::{Frame, has_path};

/// The module of the probe that C code calls when it allocates.
const PROBE: &str = "memcheck_ledger::c_heap::";

/// Those that called the probe of the C heap, the innermost first; empty for other stacks.
pub(super) fn allocating(frames: &[(&Frame, Owner)]) -> Vec<Frame> {
    let probe = frames.iter().rposition(|(frame, _)| frame.function.starts_with(PROBE));
    let callers = probe.map_or(&[][..], |probe| &frames[probe + 1..]);
    let callers = callers.iter().take_while(|(frame, _)| frame.is_c_function());
    callers.map(|(frame, _)| (*frame).clone()).collect()
}

impl Frame {
    /// True for a function without a module and a file, such as one in C without debug information.
    pub(super) fn is_c_function(&self) -> bool {
        self.file.is_none() && !has_path(&self.function) && self.owner() == Owner::Plumbing
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stack;
    use super::super::tests::frame;

    const PROBE: &str = "memcheck_ledger::c_heap::functions::malloc";
    const PROBE_FILE: &str = "memcheck-ledger/src/c_heap/functions.rs";

    #[test]
    fn c_functions_that_allocate_are_kept_and_name_the_operation() {
        let calls = [
            frame(PROBE, PROBE_FILE),
            frame("onig_new", ""),
            frame("onig_compile", ""),
            frame("app::tokenize", "src/main.rs"),
            frame("main", ""),
        ];
        let stack = Stack::trimmed(calls.clone());
        let functions: Vec<_> = stack.frames.iter().map(|frame| frame.short()).collect();
        assert_eq!(functions, ["onig_new", "onig_compile", "tokenize"]);
        assert_eq!(stack.operation().as_deref(), Some("onig_new"));
        assert_eq!(stack.user().unwrap().place().as_deref(), Some("src/main.rs:7"));
        // A stack of Rust's allocator has no C functions.
        let of_rust = Stack::trimmed(calls[1..].to_vec());
        assert_eq!((of_rust.frames.len(), of_rust.operation()), (1, None));
    }
}
