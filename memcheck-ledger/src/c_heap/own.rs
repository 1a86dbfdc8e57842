//! Marks the calls of `malloc` that are not those of the program's C code: the calls of Rust's
//! allocator, and those that the C library makes while the ledger records a block.
//!
//! The state is constant-initialized and has no destructor, so that it can be read while a thread
//! starts or ends.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::ledger::RecordingMode;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, blocks that its thread takes from the C heap are not counted.
#[must_use = "blocks are not counted only while the guard lives"]
pub struct Inside {
    is_marked: bool,
    _not_send: PhantomData<*const ()>,
}

/// Marks the calls of this thread if the C heap is counted. PERF: otherwise no mark is needed.
#[inline]
pub fn enter(mode: RecordingMode) -> Inside {
    let is_marked = mode.counts_c_heap();
    if is_marked {
        DEPTH.set(DEPTH.get() + 1);
    }
    Inside { is_marked, _not_send: PhantomData }
}

/// True if the calls of this thread are marked.
#[inline]
pub fn is_inside() -> bool {
    DEPTH.get() != 0
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        if self.is_marked {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
}
