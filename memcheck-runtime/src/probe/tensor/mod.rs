//! The tensors of candle, as they come and go: which block is which tensor.
//!
//! A block knows its bytes; its shape, its element type, whether it is part of
//! a graph and whether only a view of it is left, the tensor knows. candle has
//! no hook there, but every tensor is an `Arc` of a structure of one size: in
//! a run with attribution a host block of that size and alignment may be one.
//! It is looked at when its thread allocates the next time, or frees memory of a
//! device (by then it is written), and is taken for a tensor only if everything
//! about it fits, above all its number, which candle draws from a counter and
//! which no other memory holds twice.
//!
//! Until then the tensor may have been handed to another thread and dropped
//! there. So who frees a block waits while it is looked at (`pending`), and the
//! tensor is owned meanwhile, which fails where its last owner has just left.
//!
//! The layout is candle's own business, so it is learned at the start from
//! tensors made for it (`layout`). Where it cannot be learned, there are no
//! shapes, and the report says so.

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
use memcheck_core::attribution::HeldBy;
use memcheck_core::quiet;

use crate::ledger;
use crate::ledger::table::Table;
use crate::scope;
use layout::Learned;
use pending::{Marked, NoSlot};

pub(crate) use devices::since as devices_since;
pub(crate) use types::named;

static LAYOUT: OnceLock<Learned> = OnceLock::new();
/// Bytes of the block of a tensor; 0 until that is learned.
static SIZE: AtomicUsize = AtomicUsize::new(0);
/// Live tensors: address -> the block of its storage, and what the tensor is to it.
static TENSORS: Table = Table::new();
/// A block found no room there.
static FULL: AtomicBool = AtomicBool::new(false);
/// The highest number of a tensor so far.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// Of a tensor: bits beside the bytes that it sees of its block.
const WHOLE: u64 = 1 << 48;
const GRAPH: u64 = 1 << 49;
const VARIABLE: u64 = 1 << 50;
const BYTES: u64 = WHOLE - 1;

/// Starts to follow tensors. `false` where their layout is not understood.
///
/// # Errors
/// When the system refuses memory for the tables.
pub(crate) fn start() -> std::io::Result<bool> {
    TENSORS.map()?;
    types::map()?;
    let learned = LAYOUT.get().copied().or_else(layout::learn);
    let Some(learned) = learned else { return Ok(false) };
    LATEST.store(learned.latest, Relaxed);
    let _ = LAYOUT.set(learned);
    SIZE.store(learned.block.size(), Relaxed);
    forget_in_children();
    ledger::follow_tensors(true);
    Ok(true)
}

extern "C" fn forget() {
    ledger::follow_tensors(false);
}

/// In a forked child, the threads that look at blocks are gone, and nobody may
/// wait for them.
fn forget_in_children() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler changes an atomic, which is allowed after fork.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    });
}

/// Stops to follow tensors. Whether there was room for all of them.
pub(crate) fn stop() -> bool {
    ledger::follow_tensors(false);
    !FULL.load(Relaxed)
}

/// A host block was allocated, while tensors are followed.
// PERF: inlined as far as most calls come, which is that nothing is pending and
// that the block is no tensor.
#[inline]
pub(crate) fn allocated(address: u64, of: Layout) {
    if pending::is_some() || of.size() == SIZE.load(Relaxed) {
        look_at_last(address, of);
    }
}

#[inline(never)]
fn look_at_last(address: u64, of: Layout) {
    settle();
    let is_it = LAYOUT.get().is_some_and(|learned| of == learned.block);
    if is_it {
        TENSORS.expect(address);
        if pending::put(address) == Err(NoSlot::Taken) {
            FULL.store(true, Relaxed);
        }
    }
}

/// A host block is about to be freed, or to be resized, while tensors are followed.
#[inline]
pub(crate) fn freed(address: u64, of: Layout) {
    if of.size() == SIZE.load(Relaxed) {
        gone(address);
    }
}

#[inline(never)]
fn gone(address: u64) {
    settle();
    if TENSORS.remove(address, None).is_none() {
        pending::forget(address);
        // What another thread was looking at meanwhile is there now.
        TENSORS.remove(address, None);
    }
}

/// Looks at what may have become a tensor since this thread's last event.
#[inline]
pub(crate) fn settle() {
    if pending::is_some() && !quiet::is_quiet() {
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
        scope::needed();
        tensor = look(&marked, learned);
    }
    drop(marked);
    // Only now: where its owner has left meanwhile, it goes with this.
    drop(tensor);
}

/// Notes the tensor that stands in a marked block, if one does, and owns it.
fn look(marked: &Marked, learned: &Learned) -> Option<Tensor> {
    let address = marked.address;
    // SAFETY: a live block of the layout's size that its thread has written; it
    // is marked, so nobody frees it.
    let number = unsafe { learned.number(address) }?;
    // Numbers only rise; one that was seen before stands in memory that has
    // been used again and is not written yet.
    let known = LATEST.load(Relaxed);
    if number <= marked.last() || number > known + FAR {
        return None;
    }
    // SAFETY: by its number and all that `number` has checked, this is the
    // inside of an `Arc` of a tensor.
    let tensor = unsafe { learned.own(address) }?;
    marked.set_last(number);
    // PERF: now and then; it is only ever a bound.
    if number > known + NEAR {
        LATEST.fetch_max(number, Relaxed);
    }
    devices::note(&tensor);
    // SAFETY: a tensor, and it is owned here.
    let storage = unsafe { learned.storage(address) };
    let Some(block) = block::of(storage) else { return Some(tensor) };
    let bytes = (tensor.elem_count() * tensor.dtype().size_in_bytes()) as u64;
    // A transposed tensor sees all of its block, and so does a reshaped one.
    let whole = ledger::shaped(block, bytes, || types::number(tensor.dims(), tensor.dtype()));
    let flag = |condition: bool, bit: u64| if condition { bit } else { 0 };
    let what = bytes.min(BYTES)
        | flag(whole, WHOLE)
        | flag(tensor.track_op() && !tensor.is_variable(), GRAPH)
        | flag(tensor.is_variable(), VARIABLE);
    if !TENSORS.insert(address, [block, what], None) {
        FULL.store(true, Relaxed);
    }
    Some(tensor)
}

/// Numbers that may be drawn by other threads between two looks.
const FAR: u64 = 1 << 24;
/// Numbers after which the highest one is noted anew.
const NEAR: u64 = 1 << 16;

/// What the live tensors say of the blocks that they see.
pub(crate) fn held() -> HashMap<u64, HeldBy> {
    let mut held: HashMap<u64, HeldBy> = HashMap::new();
    TENSORS.each(|_, [block, what]| {
        let by = held.entry(block).or_default();
        if what & WHOLE != 0 {
            by.whole += 1;
        } else {
            by.views += 1;
            by.view_bytes = by.view_bytes.max(what & BYTES);
        }
        by.graph += u64::from(what & GRAPH != 0);
        by.variables += u64::from(what & VARIABLE != 0);
    });
    held
}
