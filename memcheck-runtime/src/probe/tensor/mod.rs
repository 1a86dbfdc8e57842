//! Follows candle's tensors, so that blocks get the shapes of their tensors.
//!
//! The ledger knows the bytes of a block. The tensor knows the shape and element type, and whether
//! it is a view or part of a graph. candle has no hook for tensors, but every tensor is an `Arc` of
//! a structure of one size. In a run with attribution, every host block of that size and alignment
//! is therefore a candidate. A candidate is examined at its thread's next allocation, or next free
//! of device memory, because it has been written by then. It is accepted as a tensor only if all of
//! its contents fit, above all its number, which candle takes from a counter and which no other
//! memory holds twice.
//!
//! The tensor can be moved to another thread and dropped there before it is examined. A thread that
//! frees a block therefore waits while the block is examined (`pending`). The examining thread
//! takes a reference to the tensor, which fails if the last owner has just dropped it.
//!
//! The layout is private to candle, so it is learned at the start from sample tensors (`layout`).
//! If it cannot be learned, shapes are missing, and the report states this.

mod block;
mod devices;
mod layout;
mod pending;
mod types;

use std::alloc::Layout;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use candle_core::Tensor;
use memcheck_core::measurement::attribution::HeldBy;
use memcheck_core::quiet;
use memcheck_ledger as ledger;
use memcheck_ledger::host::{self, Follower};
use memcheck_ledger::table::BlockTable;

use crate::{os, scope};
use block::StorageBlock;
use layout::LearnedLayout;
use pending::{Marked, NoSlot};

pub(crate) use devices::since as devices_since;
pub(crate) use types::tensor_type;

static LAYOUT: OnceLock<LearnedLayout> = OnceLock::new();
/// Bytes of the block of a tensor; 0 until the layout is learned.
static SIZE: AtomicUsize = AtomicUsize::new(0);
/// Live tensors: address -> the block of its storage, and the bytes and flags of the tensor.
static TENSORS: BlockTable = BlockTable::new();
/// True if a tensor could not be stored.
static INCOMPLETE: AtomicBool = AtomicBool::new(false);
/// An approximation of the highest number of a tensor so far.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// Flags of a tensor in the second word, above the bytes of the block that the tensor sees.
const WHOLE: u64 = 1 << 48;
const GRAPH: u64 = 1 << 49;
const VARIABLE: u64 = 1 << 50;
/// The bits above the flags: the number of the device, from 1; 0 if it is not known.
const DEVICE_SHIFT: u32 = 51;
const BYTES: u64 = WHOLE - 1;

/// Starts to follow tensors. Returns `false` if their layout cannot be learned.
///
/// # Errors
/// If the system refuses memory for the tables.
pub(crate) fn start() -> std::io::Result<bool> {
    TENSORS.map()?;
    types::map()?;
    let learned = LAYOUT.get().copied().or_else(layout::learn);
    let Some(learned) = learned else { return Ok(false) };
    LATEST.store(learned.latest, Relaxed);
    let _ = LAYOUT.set(learned);
    // Everything is in place before the ledger calls the follower.
    SIZE.store(learned.block.size(), Relaxed);
    disable_in_children();
    host::set_follower(Follower { allocated, freed });
    ledger::follow_tensors(true);
    Ok(true)
}

extern "C" fn disable() {
    ledger::follow_tensors(false);
}

/// Stops following tensors in forked children, because the threads that examine blocks do not exist
/// there, and a thread that waited for them would wait forever.
fn disable_in_children() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        os::in_forked_children(disable);
    });
}

/// Stops following tensors. Returns true if there was room for all of them and their types.
pub(crate) fn stop() -> bool {
    ledger::follow_tensors(false);
    !INCOMPLETE.load(Relaxed) && types::is_complete()
}

/// Handles the allocation of a host block while tensors are followed.
fn allocated(address: u64, of: Layout) {
    if pending::has_candidate() || of.size() == SIZE.load(Relaxed) {
        examine_last(address, of);
    }
}

#[inline(never)]
fn examine_last(address: u64, of: Layout) {
    settle();
    let fits = LAYOUT.get().is_some_and(|learned| of == learned.block);
    if fits {
        // PERF: the entry is written when the block is examined, and its cache line has come by
        // then.
        TENSORS.prefetch_home(address);
        if pending::put(address) == Err(NoSlot::Taken) {
            INCOMPLETE.store(true, Relaxed);
        }
    }
}

/// Handles a host block that is about to be freed or resized while tensors are followed.
fn freed(address: u64, of: Layout) {
    if of.size() == SIZE.load(Relaxed) {
        remove_freed(address);
    }
}

#[inline(never)]
fn remove_freed(address: u64) {
    settle();
    if TENSORS.remove(address, None).is_none() {
        pending::forget(address);
        // Another thread may have examined the block in the meantime and added the tensor.
        TENSORS.remove(address, None);
    }
}

/// Examines the candidate that this thread has allocated last.
#[inline]
pub(crate) fn settle() {
    if pending::has_candidate() && !quiet::is_quiet() {
        settle_next();
    }
}

#[inline(never)]
fn settle_next() {
    let Some(marked) = pending::mark() else { return };
    let mut tensor = None;
    if ledger::mode().follows_tensors()
        && let Some(learned) = LAYOUT.get()
    {
        let _quiet = quiet::enter();
        scope::install_pending();
        tensor = examine(&marked, learned);
    }
    drop(marked);
    // Dropped after the mark is gone: if the tensor's owner has dropped it in the meantime, this
    // drop frees it.
    drop(tensor);
}

/// Examines a marked block. If it is a tensor, records it and returns a reference to it.
fn examine(marked: &Marked, learned: &LearnedLayout) -> Option<Tensor> {
    let address = marked.address;
    // SAFETY: this is a live block of the layout's size that its thread has written. It is marked,
    // so other threads do not free it.
    let number = unsafe { learned.number(address) }?;
    // Numbers only rise. A number that was seen before is in reused memory that the program has not
    // written yet.
    let known = LATEST.load(Relaxed);
    if number <= marked.last() || number > known + FAR {
        return None;
    }
    // SAFETY: its number and the checks in `LearnedLayout::number` prove that this block is the
    // `Arc` of a tensor. It is marked, so its memory is not freed.
    let tensor = unsafe { learned.upgrade(address) }?;
    marked.set_last(number);
    // PERF: stored only now and then, because it is used as a bound only.
    if number > known + NEAR {
        LATEST.fetch_max(number, Relaxed);
    }
    let device = devices::record(&tensor).map_or(0, |device| u64::from(device) + 1);
    // SAFETY: this is a tensor, and `tensor` keeps it alive.
    let storage = unsafe { learned.storage(address) };
    let Some(StorageBlock { address: block, spare }) = StorageBlock::of(storage) else {
        return Some(tensor);
    };
    let bytes = (tensor.elem_count() * tensor.dtype().size_in_bytes()) as u64;
    // A transposed tensor sees its whole block, and so do a reshaped one and one whose `Vec` has
    // spare capacity.
    let whole = ledger::shaped(block, bytes.saturating_add(spare), || {
        types::type_number(tensor.dims(), tensor.dtype())
    });
    let flag = |condition: bool, bit: u64| if condition { bit } else { 0 };
    let flags = bytes.min(BYTES)
        | flag(whole, WHOLE)
        // candle's `track_op` is true for variables too.
        | flag(tensor.track_op() && !tensor.is_variable(), GRAPH)
        | flag(tensor.is_variable(), VARIABLE)
        | device << DEVICE_SHIFT;
    if !TENSORS.insert(address, [block, flags], None) {
        INCOMPLETE.store(true, Relaxed);
    }
    Some(tensor)
}

/// The most numbers that other threads can take between two examinations.
const FAR: u64 = 1 << 24;
/// The number of tensors after which the highest number is stored again.
const NEAR: u64 = 1 << 16;

/// For each block that a tensor of a device holds which was found in iteration `first` or later, the
/// number of that device.
pub(crate) fn new_devices(first: u32) -> HashMap<u64, u16> {
    let mut devices = HashMap::new();
    TENSORS.each(|_, [block, flags]| {
        let number = u16::try_from(flags >> DEVICE_SHIFT).unwrap_or(0).checked_sub(1);
        if let Some(number) = number.filter(|&number| devices::is_new(number, first)) {
            devices.insert(block, number);
        }
    });
    devices
}

/// For each block, the properties of the live tensors that see it.
pub(crate) fn holders() -> HashMap<u64, HeldBy> {
    let mut holders: HashMap<u64, HeldBy> = HashMap::new();
    TENSORS.each(|_, [block, flags]| {
        let by = holders.entry(block).or_default();
        if flags & WHOLE != 0 {
            by.whole += 1;
        } else {
            by.views += 1;
            by.view_bytes = by.view_bytes.max(flags & BYTES);
        }
        by.graph += u64::from(flags & GRAPH != 0);
        by.variables += u64::from(flags & VARIABLE != 0);
    });
    holders
}
