//! The host probe: a global allocator that counts.
//!
//! What the workload allocates is counted, to the byte and the same in every run, in two
//! spaces: blocks of at least 1 KiB (`host`), which are those of tensors, and smaller ones
//! (`host/small`), of which the number depends on the versions of libraries. The smaller ones
//! are counted only if the test runs on the host ([`ledger::count_small`]). Left out are, by
//! their kind:
//!
//! * blocks aligned to 64 bytes or more: gemm's packing buffers and its slab;
//! * zeroed blocks of exactly 1,520 bytes aligned to 8: rayon's injector takes
//!   one for every 63 jobs that enter its pool, and gives back the last;
//! * what a quiet thread allocates: the instrument, the simulated device, the
//!   test harness;
//! * blocks from before the test body: they are not in the ledger.

use std::alloc::{GlobalAlloc, Layout, System};

use memcheck_core::quiet::is_quiet;
use memcheck_core::space::Space;

use super::tensor;
use crate::ledger::{self, Mode, Taken};

/// Size in bytes from which on a block belongs to `host`. Smaller ones belong to
/// `host/small`.
pub const TENSOR_CLASS: usize = 1 << 10;
/// Alignment from which on a block is a library's scratch buffer, in bytes.
pub const SCRATCH_ALIGNMENT: usize = 64;

/// A block of rayon's injector queue (`crossbeam_deque::Block<JobRef>`: 63
/// slots of 24 bytes and a link), which is allocated zeroed.
const INJECTOR_BLOCK: (usize, usize) = (1_520, 8);

/// An allocator that counts what goes through it.
///
/// With the feature `global-allocator` (on by default) `Tracking<System>` is
/// this program's global allocator. To keep one of your own, switch that
/// feature off and wrap it:
///
/// ```ignore
/// use memcheck_runtime::Tracking;
///
/// #[global_allocator]
/// static ALLOCATOR: Tracking<mimalloc::MiMalloc> = Tracking::new(mimalloc::MiMalloc);
/// ```
///
/// Outside a memory test it costs one load of a flag and a branch a call.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tracking<A = System> {
    inner: A,
}

impl<A> Tracking<A> {
    /// Counts what `inner` allocates.
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }
}

#[cfg(feature = "global-allocator")]
#[global_allocator]
static ALLOCATOR: Tracking<System> = Tracking::new(System);

#[inline]
fn is_tensor(layout: Layout) -> bool {
    layout.size() >= TENSOR_CLASS && layout.align() < SCRATCH_ALIGNMENT
}

/// The space of a block, if such blocks are counted.
#[inline]
fn space(mode: Mode, layout: Layout) -> Option<Space> {
    if layout.size() >= TENSOR_CLASS {
        is_tensor(layout).then_some(Space::Host)
    } else {
        (mode.counts_small() && layout.align() < SCRATCH_ALIGNMENT).then_some(Space::HostSmall)
    }
}

#[inline]
fn allocated(mode: Mode, address: *mut u8, layout: Layout) {
    if is_quiet() {
        return;
    }
    if mode.follows_tensors() {
        tensor::allocated(address as u64, layout);
    }
    match space(mode, layout) {
        Some(Space::Host) => tensor_allocated(address as u64, layout.size() as u64),
        Some(_) => small_allocated(address as u64, layout.size() as u64),
        None => {}
    }
}

// PERF: each class has functions of its own, so that a block that is not counted does not
// save and restore the registers that the table needs.
#[inline(never)]
fn tensor_allocated(address: u64, size: u64) {
    ledger::allocated(Space::Host, address, size);
}

#[inline(never)]
fn small_allocated(address: u64, size: u64) {
    ledger::allocated(Space::HostSmall, address, size);
}

#[inline(never)]
fn counted_freed(address: u64) {
    ledger::freed(address);
}

#[inline]
fn freed(mode: Mode, address: *mut u8, layout: Layout) {
    if mode.follows_tensors() {
        tensor::freed(address as u64, layout);
    }
    // Also on a quiet thread: whoever frees it, the block was counted.
    if space(mode, layout).is_some() {
        counted_freed(address as u64);
    }
}

// SAFETY: every call is forwarded to `inner` with the arguments it was given,
// and what `inner` returns is returned; the ledger never touches the memory.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Tracking<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        let address = unsafe { self.inner.alloc(layout) };
        let mode = ledger::mode();
        if mode.is_armed() && !address.is_null() {
            allocated(mode, address, layout);
        }
        address
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let address = unsafe { self.inner.alloc_zeroed(layout) };
        let mode = ledger::mode();
        if mode.is_armed()
            && !address.is_null()
            && (layout.size(), layout.align()) != INJECTOR_BLOCK
        {
            allocated(mode, address, layout);
        }
        address
    }

    #[inline]
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        let mode = ledger::mode();
        if mode.is_armed() {
            freed(mode, address, layout);
        }
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.inner.dealloc(address, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, address: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let mode = ledger::mode();
        if !mode.is_armed() {
            // SAFETY: the caller keeps the contract of `realloc`.
            return unsafe { self.inner.realloc(address, layout, new_size) };
        }
        if mode.follows_tensors() {
            tensor::freed(address as u64, layout);
        }
        // Out of the table before the call: as soon as the old address is
        // free, another thread may be given it.
        let old = space(mode, layout).and_then(|_| ledger::taken(address as u64));
        // SAFETY: as above.
        let new = unsafe { self.inner.realloc(address, layout, new_size) };
        if new.is_null() {
            if let Some(old) = old {
                ledger::put_back(address as u64, old);
            }
            return new;
        }
        resized(mode, new, layout, (new_size, old));
        new
    }
}

/// Books a block that was resized, within its space or across spaces.
#[inline]
fn resized(mode: Mode, new: *mut u8, layout: Layout, (new_size, old): (usize, Option<Taken>)) {
    // SAFETY: `realloc` succeeded, so its contract held: `new_size` rounded up
    // to the alignment is a size, and the alignment is that of a layout.
    let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
    match (old, space(mode, new_layout)) {
        (Some(old), Some(space)) => ledger::moved(old, space, new as u64, new_size as u64),
        (Some(old), None) => ledger::left(old),
        // A block that the ledger does not know is from before the body. It stays unknown,
        // unless it is large only now.
        (None, Some(Space::Host)) if !is_tensor(layout) => allocated(mode, new, new_layout),
        (None, _) => {}
    }
}
