//! The scope of a thread: the `tracing` spans that it has entered, as a number. What a number means
//! is known to memcheck-runtime.

use std::cell::Cell;

thread_local! {
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// The number of the calling thread's scope; 0 if it has none.
#[inline]
pub fn current() -> u32 {
    CURRENT.try_with(Cell::get).unwrap_or(0)
}

/// Sets the scope of the calling thread.
pub fn set_current(scope: u32) {
    CURRENT.with(|current| current.set(scope));
}
