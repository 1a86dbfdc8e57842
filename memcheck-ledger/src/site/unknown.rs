//! Call sites on a system whose stacks are not walked: every stack is empty, so that a site is only
//! a scope.

use super::contexts;
use crate::scope;

pub(super) fn prepare() {}

pub(super) fn prepare_for_c_heap() {}

/// The number of the caller's context.
pub(super) fn current_context() -> u32 {
    contexts::number(&[], 0, scope::current())
}

/// The return addresses of the caller's stack: none.
pub(super) fn frames() -> Vec<u64> {
    Vec::new()
}

/// Stacks of interrupted threads: only the instruction is known.
pub(super) mod interrupted {
    use crate::site::Interrupted;

    pub(in crate::site) fn prepare() {}

    pub(in crate::site) fn calls(thread: Interrupted, mut add: impl FnMut(u64)) {
        add(thread.ip.wrapping_add(1));
    }
}

pub(super) fn with_fixed_frames<R>(work: impl FnOnce() -> R) -> R {
    work()
}
