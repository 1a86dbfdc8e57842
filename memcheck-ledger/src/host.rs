//! The host probe: a global allocator that counts.
//!
//! The allocations of the workload are counted, exactly to the byte and with the same result in
//! every run, in two spaces. Blocks of at least 1 KiB (`host`) are those of tensors. The number of
//! smaller blocks (`host/small`) depends on the versions of libraries, so they are counted only if
//! the test runs on the host ([`ledger::count_small`]). The following blocks are not counted:
//!
//! * blocks aligned to 64 bytes or more: gemm's packing buffers and its slab;
//! * zeroed blocks of exactly 1,520 bytes aligned to 8: rayon's injector allocates one for every 63
//!   jobs that enter its pool, and frees the previous one;
//! * blocks of a quiet thread: the instrument, the simulated device, the test harness;
//! * blocks from before the test body, because they are not in the ledger.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

use memcheck_limits::quiet::is_quiet;
use memcheck_limits::space::Space;

use crate::c_heap::own;
use crate::ledger::{self, RecordingMode, Taken};

/// The minimum size in bytes of a block of `host`. Smaller blocks belong to `host/small`.
pub const TENSOR_CLASS: usize = 1 << 10;
/// The minimum alignment in bytes of a block that counts as a library's scratch buffer.
pub const SCRATCH_ALIGNMENT: usize = 64;

/// Size and alignment of a block of rayon's injector queue, which is allocated zeroed
/// (`crossbeam_deque::Block<JobRef>`: 63 slots of 24 bytes and a link).
const INJECTOR_BLOCK: (usize, usize) = (1_520, 8);

/// An allocator that counts the blocks that it allocates.
///
/// With the feature `global-allocator` (on by default), `Tracking<System>` is the global allocator
/// of this program. To use another allocator, switch that feature off and wrap the allocator:
///
/// ```ignore
/// use memcheck_runtime::Tracking;
///
/// #[global_allocator]
/// static ALLOCATOR: Tracking<mimalloc::MiMalloc> = Tracking::new(mimalloc::MiMalloc);
/// ```
///
/// Outside a memory test it costs one load of a flag and one branch per call.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tracking<A = System> {
    inner: A,
}

impl<A> Tracking<A> {
    /// Counts the blocks that `inner` allocates.
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }
}

/// What else happens to a host block while tensors are followed ([`ledger::follow_tensors`]).
#[derive(Debug, Clone, Copy)]
pub struct Follower {
    /// A block was allocated at this address.
    pub allocated: fn(u64, Layout),
    /// The block at this address is about to be freed or resized.
    pub freed: fn(u64, Layout),
}

static FOLLOWER: OnceLock<Follower> = OnceLock::new();

/// Sets the follower. Only the first one is kept.
pub fn set_follower(follower: Follower) {
    let _ = FOLLOWER.set(follower);
}

#[inline]
fn follow(event: impl Fn(&Follower) -> fn(u64, Layout), address: *mut u8, layout: Layout) {
    if let Some(follower) = FOLLOWER.get() {
        event(follower)(address as u64, layout);
    }
}

#[cfg(feature = "global-allocator")]
#[global_allocator]
static ALLOCATOR: Tracking<System> = Tracking::new(System);

#[inline]
fn is_tensor(layout: Layout) -> bool {
    layout.size() >= TENSOR_CLASS && layout.align() < SCRATCH_ALIGNMENT
}

/// The space of a block; `None` if such blocks are not counted.
#[inline]
fn space(mode: RecordingMode, layout: Layout) -> Option<Space> {
    if layout.size() >= TENSOR_CLASS {
        is_tensor(layout).then_some(Space::Host)
    } else {
        (mode.counts_small() && layout.align() < SCRATCH_ALIGNMENT).then_some(Space::HostSmall)
    }
}

#[inline]
fn allocated(mode: RecordingMode, address: *mut u8, layout: Layout) {
    if is_quiet() {
        return;
    }
    if mode.follows_tensors() {
        follow(|follower| follower.allocated, address, layout);
    }
    match space(mode, layout) {
        Some(Space::Host) => tensor_allocated(address as u64, layout.size() as u64),
        Some(_) => small_allocated(address as u64, layout.size() as u64),
        None => {}
    }
}

// PERF: each class has its own functions, so that a block that is not counted does not save and
// restore the registers that the table needs.
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
fn freed(mode: RecordingMode, address: *mut u8, layout: Layout) {
    if mode.follows_tensors() {
        follow(|follower| follower.freed, address, layout);
    }
    // Also on a quiet thread, because the block was counted when it was allocated.
    if space(mode, layout).is_some() {
        counted_freed(address as u64);
    }
}

// SAFETY: every call is forwarded to `inner` with the same arguments, and the result of `inner` is
// returned. The ledger never accesses the memory of a block.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Tracking<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mode = ledger::mode();
        let _inside = own::enter(mode);
        // SAFETY: the caller keeps the contract of `alloc`.
        let address = unsafe { self.inner.alloc(layout) };
        if mode.is_armed() && !address.is_null() {
            allocated(mode, address, layout);
        }
        address
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let mode = ledger::mode();
        let _inside = own::enter(mode);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let address = unsafe { self.inner.alloc_zeroed(layout) };
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
        let _inside = own::enter(mode);
        if mode.is_armed() {
            freed(mode, address, layout);
        }
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.inner.dealloc(address, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, address: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let mode = ledger::mode();
        let _inside = own::enter(mode);
        if !mode.is_armed() {
            // SAFETY: the caller keeps the contract of `realloc`.
            return unsafe { self.inner.realloc(address, layout, new_size) };
        }
        if mode.follows_tensors() {
            follow(|follower| follower.freed, address, layout);
        }
        // The block must be taken out of the table before the call, because another thread can get
        // the old address as soon as it is free.
        let old = space(mode, layout).and_then(|_| ledger::taken(address as u64));
        // SAFETY: the caller keeps the contract of `realloc`.
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

/// Records a block that was resized, within its space or across spaces.
#[inline]
fn resized(
    mode: RecordingMode,
    new: *mut u8,
    layout: Layout,
    (new_size, old): (usize, Option<Taken>),
) {
    // SAFETY: `realloc` succeeded, so its contract was kept: `new_size` rounded up to the alignment
    // does not overflow, and the alignment is that of a layout.
    let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
    match (old, space(mode, new_layout)) {
        (Some(old), Some(space)) => ledger::moved(old, space, new as u64, new_size as u64),
        (Some(old), None) => ledger::discarded(old),
        // A block that is not in the ledger is from before the body and is still not counted. The
        // exception is a block that was too small for `host` before it was resized.
        (None, Some(Space::Host)) if !is_tensor(layout) => allocated(mode, new, new_layout),
        (None, _) => {}
    }
}
