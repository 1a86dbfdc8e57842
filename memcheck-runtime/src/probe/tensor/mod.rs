//! The tensors of candle, as they come and go: which block is which tensor.
//!
//! A block knows its bytes; its shape, its element type, whether it is part of
//! a graph and whether only a view of it is left, the tensor knows. candle has
//! no hook there, but every tensor is an `Arc` of a structure of one size: in
//! a run with attribution a host block of that size and alignment may be one.
//! It is looked at when its thread allocates or frees the next time (by then it
//! is written), and is taken for a tensor only if everything about it fits,
//! above all its number, which candle draws from a counter and which no other
//! memory holds twice.
//!
//! Meanwhile the tensor may have been handed to another thread and dropped
//! there. So a block is *marked* while it is looked at, and who frees it waits
//! for that; and the tensor is owned while it is looked at, which fails where
//! its last owner has just left.
//!
//! ```text
//! allocated ──► pending ──mark──► looked at ──► settled ──► freed
//!                  └────────────────────────────────────────► freed (elsewhere)
//! ```
//!
//! The layout is candle's own business, so it is learned at the start from
//! tensors made for it (`layout`). Where it cannot be learned, there are no
//! shapes, and the report says so.

mod block;
mod devices;
mod layout;
mod types;

use std::alloc::Layout;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed},
};

use candle_core::Tensor;
use memcheck_core::attribution::HeldBy;
use memcheck_core::quiet;

use crate::ledger;
use crate::ledger::table::{Table, Words};
use crate::scope;
use layout::Learned;

pub(crate) use devices::since as devices_since;
pub(crate) use types::named;

static ON: AtomicBool = AtomicBool::new(false);
static LAYOUT: OnceLock<Learned> = OnceLock::new();
/// Blocks that may be tensors, and are live: address -> while it is pending, a
/// number that no other pending block has; once it is settled, the block of the
/// tensor's storage, and what the tensor is to it.
static TENSORS: Table = Table::new();
/// A block found no room there.
static FULL: AtomicBool = AtomicBool::new(false);
/// The highest number of a tensor so far.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// The second word of a block that nobody has looked at yet.
const PENDING: u64 = 0;
/// While its thread looks at it.
const MARKED: u64 = 1 << 62;
/// It will not be looked at any more.
const SETTLED: u64 = 1 << 63;
/// Of a tensor: bits beside the bytes that it sees of its block.
const WHOLE: u64 = 1 << 48;
const GRAPH: u64 = 1 << 49;
const VARIABLE: u64 = 1 << 50;
const BYTES: u64 = WHOLE - 1;

thread_local! {
    /// What may be a tensor, and was not looked at yet: address and number.
    static NEXT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    /// Pending blocks that this thread has had.
    static COUNT: Cell<u64> = const { Cell::new(0) };
    /// The number of the last tensor of this thread.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

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
    ON.store(true, Relaxed);
    Ok(true)
}

/// Stops to follow tensors. Whether there was room for all of them.
pub(crate) fn stop() -> bool {
    ON.store(false, Relaxed);
    !FULL.load(Relaxed)
}

#[inline]
fn layout() -> Option<&'static Learned> {
    if ON.load(Relaxed) { LAYOUT.get() } else { None }
}

/// A host block was allocated.
#[inline]
pub(crate) fn allocated(address: u64, of: Layout) {
    let Some(learned) = layout() else { return };
    settle();
    if of == learned.block {
        let number = pending();
        if TENSORS.insert(address, [number, PENDING]) {
            NEXT.with(|next| next.set((address, number)));
        } else {
            FULL.store(true, Relaxed);
        }
    }
}

/// A number for a pending block: the thread's, and how many it has had. Two of
/// one thread are the same only half a million blocks apart.
fn pending() -> u64 {
    COUNT.with(|count| {
        count.set(count.get() + 1);
        let thread = std::ptr::from_ref(count) as u64 >> 3;
        thread << 19 | count.get() & ((1 << 19) - 1)
    })
}

/// A host block is about to be freed, or to be resized.
#[inline]
pub(crate) fn freed(address: u64, of: Layout) {
    let Some(learned) = layout() else { return };
    settle();
    if of == learned.block {
        TENSORS.remove_when(address, |state| match state.load(Acquire) {
            // Nobody will look at it: the mark says that somebody has begun.
            PENDING => state.compare_exchange(PENDING, SETTLED, Acquire, Relaxed).is_ok(),
            now => now & SETTLED != 0,
        });
    }
}

/// Looks at what may have become a tensor since this thread's last event.
// PERF: inlined as far as most calls come, which is that nothing is pending.
#[inline(always)]
pub(crate) fn settle() {
    if NEXT.with(Cell::get).0 != 0 && !quiet::is_quiet() {
        settle_next();
    }
}

#[inline(never)]
fn settle_next() {
    let (address, number) = NEXT.with(|next| next.replace((0, 0)));
    if ON.load(Relaxed)
        && let Some(learned) = LAYOUT.get()
        && let Some(marked) = TENSORS.mark(address, [number, PENDING], MARKED)
    {
        let looked = {
            let _quiet = quiet::enter();
            scope::needed();
            look(address, learned)
        };
        let (words, tensor) = looked.map_or(([0, 0], None), |(words, it)| (words, Some(it)));
        let [block, what] = words;
        marked.replace([block, what | SETTLED]);
        // Only now: where its owner has left meanwhile, it goes with this.
        drop(tensor);
    }
}

/// What stands in a marked block: the words that are kept, and the tensor.
fn look(address: u64, learned: &Learned) -> Option<(Words, Tensor)> {
    // SAFETY: a live block of the layout's size that its thread has written; it
    // is marked, so nobody frees it.
    let number = unsafe { learned.number(address) }?;
    // Numbers only rise; one that was seen before stands in memory that has
    // been used again and is not written yet.
    let known = LATEST.load(Relaxed);
    if number <= LAST.with(Cell::get) || number > known + FAR {
        return None;
    }
    // SAFETY: by its number and all that `number` has checked, this is the
    // inside of an `Arc` of a tensor.
    let tensor = unsafe { learned.own(address) }?;
    LAST.with(|last| last.set(number));
    // PERF: a load where another thread is ahead; it is only ever a bound.
    if number > known {
        LATEST.fetch_max(number, Relaxed);
    }
    devices::note(&tensor);
    // SAFETY: a tensor, and it is owned here.
    let storage = unsafe { learned.storage(address) };
    let Some(block) = block::of(storage) else { return Some(([0, 0], tensor)) };
    let bytes = (tensor.elem_count() * tensor.dtype().size_in_bytes()) as u64;
    // A transposed tensor sees all of its block, and so does a reshaped one.
    let whole = ledger::shaped(block, bytes, || types::number(tensor.dims(), tensor.dtype()));
    let flag = |condition: bool, bit: u64| if condition { bit } else { 0 };
    let what = bytes.min(BYTES)
        | flag(whole, WHOLE)
        | flag(tensor.track_op() && !tensor.is_variable(), GRAPH)
        | flag(tensor.is_variable(), VARIABLE);
    Some(([block, what], tensor))
}

/// Numbers that may be drawn by other threads between two looks.
const FAR: u64 = 1 << 24;

/// What the live tensors say of the blocks that they see.
pub(crate) fn held() -> HashMap<u64, HeldBy> {
    let mut held: HashMap<u64, HeldBy> = HashMap::new();
    TENSORS.each(|_, [block, what]: Words| {
        if block == 0 || what & SETTLED == 0 {
            return;
        }
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
