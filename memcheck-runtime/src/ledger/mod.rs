//! The ledger: what is live in every space, exactly, at every moment.
//!
//! An event changes three things: the table of live blocks, the counters of
//! its space, and nothing else. Everything on this path is an atomic operation
//! on memory that was mapped before the first event. It takes no lock,
//! allocates nothing and formats nothing, so it may run inside an allocator,
//! in a signal handler, in a forked child and while a thread dies.
//!
//! ```text
//!            allocated(space, address, size)          freed(address)
//!                        │                                 │
//!        table.insert ◄──┤                                 ├──► table.remove
//!     (size, space, birth)                                 │   (what it was)
//!                        ▼                                 ▼
//!          live += size, peak = max(peak, live)       live -= size
//! ```
//!
//! In a run with attribution a block also knows its context (call stack and
//! scope, [`crate::site`]) and every event goes on to [`crate::trace`].
//!
//! The peak is exact under concurrency: each addition to `live` yields the
//! value that it produced, every value is offered to `peak`, so `peak` is the
//! maximum over the order in which the counter really changed.

pub(crate) mod block;
mod census;
mod peak;
mod small;
pub(crate) mod table;

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use memcheck_core::space::Space;

use self::block::SPACES;
use self::table::Table;
use crate::site;
use crate::trace::{self, Event};

pub(crate) use block::{Block, Origin, index, space, spaces};
pub(crate) use census::{Census, census};
pub(crate) use peak::PeakWindow;
pub(crate) use small::{small_allocated, small_freed, small_live};

static MODE: AtomicU8 = AtomicU8::new(0);
static BLOCKS: Table = Table::new();
static COUNTERS: [Counters; SPACES] = [const { Counters::new() }; SPACES];
/// The iteration in which blocks are born now; 0 is the set-up.
static ITERATION: AtomicU32 = AtomicU32::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

/// The counters of one space, alone on their cache lines.
#[repr(align(128))]
struct Counters {
    live: AtomicU64,
    peak: AtomicU64,
    /// The highest of the peaks that were started anew since the body began.
    earlier_peak: AtomicU64,
    iteration_peak: AtomicU64,
    allocations: AtomicU64,
    allocated_total: AtomicU64,
    frees: AtomicU64,
    failed_frees: AtomicU64,
    refused_bytes: AtomicU64,
    refused_live: AtomicU64,
    refused_after: AtomicU64,
}

impl Counters {
    const fn new() -> Self {
        Self {
            live: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            earlier_peak: AtomicU64::new(0),
            iteration_peak: AtomicU64::new(0),
            allocations: AtomicU64::new(0),
            allocated_total: AtomicU64::new(0),
            frees: AtomicU64::new(0),
            failed_frees: AtomicU64::new(0),
            refused_bytes: AtomicU64::new(0),
            refused_live: AtomicU64::new(0),
            refused_after: AtomicU64::new(0),
        }
    }

    fn add(&self, bytes: u64) {
        let live = self.live.fetch_add(bytes, Relaxed) + bytes;
        raise(&self.peak, live);
        raise(&self.iteration_peak, live);
    }

    /// Starts anew from what is live.
    fn reset(&self) {
        let Self {
            live,
            peak,
            earlier_peak,
            iteration_peak,
            allocations,
            allocated_total,
            frees,
            failed_frees,
            refused_bytes,
            refused_live,
            refused_after,
        } = self;
        restart(peak, live);
        restart(iteration_peak, live);
        for counter in [
            earlier_peak,
            allocations,
            allocated_total,
            frees,
            failed_frees,
            refused_bytes,
            refused_live,
            refused_after,
        ] {
            counter.store(0, Relaxed);
        }
    }

    fn count(&self, bytes: u64) {
        self.allocations.fetch_add(1, Relaxed);
        self.allocated_total.fetch_add(bytes, Relaxed);
    }
}

/// Offers `live` to a peak. PERF: most offers are below it, and to see that
/// takes a load; `fetch_max` would be a locked instruction each time. Nothing is
/// missed: between two resets a peak only rises, so what was loaded is a bound.
#[inline]
fn raise(peak: &AtomicU64, live: u64) {
    if peak.load(Relaxed) < live {
        peak.fetch_max(live, Relaxed);
    }
}

/// The figures of one space at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) live: u64,
    /// Since it was last started anew.
    pub(crate) peak: u64,
    /// Since the body began, whatever was started anew.
    pub(crate) whole_peak: u64,
    pub(crate) iteration_peak: u64,
    pub(crate) allocations: u64,
    pub(crate) allocated_total: u64,
    pub(crate) frees: u64,
    pub(crate) failed_frees: u64,
    pub(crate) refused_bytes: u64,
    pub(crate) refused_live: u64,
    /// `allocations` at the last refusal.
    pub(crate) refused_after: u64,
}

/// Where a block comes from that is born here and now.
#[inline]
fn here() -> Origin {
    Origin { birth: ITERATION.load(Relaxed), context: site::here(), shape: 0 }
}

/// Maps the table. Events before [`arm`] are not looked at.
///
/// # Errors
/// When the system refuses the memory.
pub(crate) fn prepare() -> std::io::Result<()> {
    BLOCKS.map()
}

/// What is done with events.
// PERF: all that an event asks for stands in one byte: one relaxed load is what
// an uninstrumented run pays, and a counting one no second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode(u8);

impl Mode {
    const ARMED: u8 = 1;
    const TENSORS: u8 = 2;

    /// Whether events are looked at.
    #[inline]
    pub(crate) fn is_armed(self) -> bool {
        self.0 & Self::ARMED != 0
    }

    /// Whether host blocks are also looked at as what may be a tensor.
    #[inline]
    pub(crate) fn follows_tensors(self) -> bool {
        self.0 & Self::TENSORS != 0
    }
}

/// What is done with events now.
#[inline]
pub(crate) fn mode() -> Mode {
    Mode(MODE.load(Relaxed))
}

/// Whether events are looked at now.
#[inline]
pub(crate) fn is_armed() -> bool {
    mode().is_armed()
}

/// Starts to look at events.
pub(crate) fn arm() {
    MODE.fetch_or(Mode::ARMED, Relaxed);
}

/// From here on host blocks are looked at as what may be a tensor, or no more.
pub(crate) fn follow_tensors(follow: bool) {
    if follow {
        MODE.fetch_or(Mode::TENSORS, Relaxed);
    } else {
        MODE.fetch_and(!Mode::TENSORS, Relaxed);
    }
}

/// From here on new blocks are born in `iteration`, and the peak within the
/// iteration starts from what is live.
pub(crate) fn begin_iteration(iteration: u32) {
    ITERATION.store(iteration, Relaxed);
    trace::push(Event::Iteration(iteration));
    for counters in &COUNTERS {
        restart(&counters.iteration_peak, &counters.live);
    }
}

/// The iteration is over: what is allocated from here on is no part of its
/// figures, though it is born in it.
pub(crate) fn end_iteration() {
    trace::push(Event::Iteration(0));
}

/// The iteration in which blocks are born now; 0 is the set-up.
#[cfg(feature = "cuda")]
pub(crate) fn iteration() -> u32 {
    ITERATION.load(Relaxed)
}

/// Starts a peak anew from what is live, and returns what it was. What other
/// threads allocate meanwhile is either in the old peak or raises the new one.
fn restart(peak: &AtomicU64, live: &AtomicU64) -> u64 {
    let before = peak.swap(0, Relaxed);
    raise(peak, live.load(Relaxed));
    before
}

/// Starts every figure anew, apart from what is live: the body begins.
pub(crate) fn reset() {
    ITERATION.store(0, Relaxed);
    for counters in &COUNTERS {
        counters.reset();
    }
}

/// Starts the figures of a space anew in which nothing is live: a canary was
/// the first to use it.
pub(crate) fn reset_unused(space: Space) {
    if let Some(counters) = index(space).map(|index| &COUNTERS[index])
        && counters.live.load(Relaxed) == 0
    {
        counters.reset();
    }
}

/// Starts the peak of a space anew. What it was stays part of the whole one.
pub(crate) fn reset_peak(space: Space) {
    if let Some(Counters { live, peak, earlier_peak, .. }) = index(space).map(|at| &COUNTERS[at]) {
        // Before as well: whoever reads meanwhile must not see less than was.
        raise(earlier_peak, peak.load(Relaxed));
        raise(earlier_peak, restart(peak, live));
    }
}

/// A block was allocated.
#[inline]
pub(crate) fn allocated(space: Space, address: u64, size: u64) {
    let Some(counters) = index(space).map(|index| &COUNTERS[index]) else {
        LOST.fetch_add(1, Relaxed);
        return;
    };
    let block = Block { size, space, origin: here() };
    if BLOCKS.insert(address, block.words()) {
        counters.add(size);
        counters.count(size);
        trace::push(Event::Allocated(block));
    } else {
        LOST.fetch_add(1, Relaxed);
    }
}

/// A block is about to be freed. `None` if it was not allocated under the
/// ledger's eyes: then it is nobody's.
#[inline]
pub(crate) fn freed(address: u64) -> Option<Block> {
    let block = Block::of(BLOCKS.remove(address)?);
    if let Some(index) = index(block.space) {
        COUNTERS[index].live.fetch_sub(block.size, Relaxed);
        COUNTERS[index].frees.fetch_add(1, Relaxed);
        trace::push(Event::Freed(block));
    }
    Some(block)
}

/// The free of `block` was refused: it is live after all.
#[cfg(any(feature = "cuda", test))]
pub(crate) fn free_failed(address: u64, block: Block) {
    if let Some(counters) = index(block.space).map(|index| &COUNTERS[index]) {
        counters.failed_frees.fetch_add(1, Relaxed);
        counters.frees.fetch_sub(1, Relaxed);
        if BLOCKS.insert(address, block.words()) {
            counters.add(block.size);
            trace::push(Event::Kept(block));
        } else {
            LOST.fetch_add(1, Relaxed);
        }
    }
}

/// A block is about to be moved or resized. It stays live meanwhile, so that
/// the peak sees neither none nor both.
#[inline]
pub(crate) fn taken(address: u64) -> Option<Block> {
    BLOCKS.remove(address).map(Block::of)
}

/// A block that was [`taken`] could not be moved.
#[inline]
pub(crate) fn put_back(address: u64, block: Block) {
    if !BLOCKS.insert(address, block.words()) {
        LOST.fetch_add(1, Relaxed);
    }
}

/// A block that was [`taken`] now lies at `address` with `size` bytes.
#[inline]
pub(crate) fn moved(old: Block, address: u64, size: u64) {
    let Some(counters) = index(old.space).map(|index| &COUNTERS[index]) else { return };
    let block = Block { size, space: old.space, origin: here() };
    if !BLOCKS.insert(address, block.words()) {
        LOST.fetch_add(1, Relaxed);
    }
    trace::push_pair(Event::Freed(old), Event::Allocated(block));
    if size >= old.size {
        counters.add(size - old.size);
    } else {
        counters.live.fetch_sub(old.size - size, Relaxed);
    }
    counters.count(size);
}

/// A block that was [`taken`] left the class that is counted.
#[inline]
pub(crate) fn left(old: Block) {
    if let Some(index) = index(old.space) {
        COUNTERS[index].live.fetch_sub(old.size, Relaxed);
        COUNTERS[index].frees.fetch_add(1, Relaxed);
        trace::push(Event::Freed(old));
    }
}

/// The size of the live block at `address`, if there is one.
#[cfg(any(feature = "cuda", test))]
pub(crate) fn size_of(address: u64) -> Option<u64> {
    BLOCKS.get(address).map(|words| Block::of(words).size)
}

/// A tensor of `bytes` is known now in the live block at `address`. Whether it
/// is all of the block; then the block is of its shape from here on, if it had
/// none.
pub(crate) fn shaped(address: u64, bytes: u64, shape: impl FnOnce() -> u16) -> bool {
    let mut whole = false;
    let mut before = None;
    BLOCKS.update(address, |words| {
        let block = Block::of(words);
        whole = block.size == bytes;
        if !whole || block.origin.shape != 0 {
            return words;
        }
        let shape = shape();
        before = Some((block, shape));
        Block { origin: Origin { shape, ..block.origin }, ..block }.words()
    });
    if let Some((block, shape)) = before {
        trace::push(Event::Shaped(block, shape));
    }
    whole
}

/// Shows every live block and its address to `see`.
pub(crate) fn each(mut see: impl FnMut(u64, Block)) {
    BLOCKS.each(|address, words| see(address, Block::of(words)));
}

/// The device had no memory for `size` bytes.
#[cfg(feature = "cuda")]
pub(crate) fn refused(space: Space, size: u64) {
    if let Some(counters) = index(space).map(|index| &COUNTERS[index]) {
        counters.refused_bytes.store(size, Relaxed);
        counters.refused_live.store(counters.live.load(Relaxed), Relaxed);
        counters.refused_after.store(counters.allocations.load(Relaxed), Relaxed);
        if trace::is_on() {
            trace::push(Event::Refused(Block { size, space, origin: here() }));
        }
    }
}

/// Forgets the last refusal: whoever asked has lived with it.
pub(crate) fn forget_refusal(space: Space) {
    if let Some(counters) = index(space).map(|index| &COUNTERS[index]) {
        counters.refused_bytes.store(0, Relaxed);
    }
}

/// An event was seen that the ledger could not take.
#[cfg(feature = "cuda")]
pub(crate) fn lost_one() {
    LOST.fetch_add(1, Relaxed);
}

/// The figures of `space` now.
pub(crate) fn snapshot(space: Space) -> Snapshot {
    let Some(counters) = index(space).map(|index| &COUNTERS[index]) else {
        return Snapshot::default();
    };
    let peak = counters.peak.load(Relaxed);
    Snapshot {
        live: counters.live.load(Relaxed),
        peak,
        whole_peak: peak.max(counters.earlier_peak.load(Relaxed)),
        iteration_peak: counters.iteration_peak.load(Relaxed),
        allocations: counters.allocations.load(Relaxed),
        allocated_total: counters.allocated_total.load(Relaxed),
        frees: counters.frees.load(Relaxed),
        failed_frees: counters.failed_frees.load(Relaxed),
        refused_bytes: counters.refused_bytes.load(Relaxed),
        refused_live: counters.refused_live.load(Relaxed),
        refused_after: counters.refused_after.load(Relaxed),
    }
}

/// Events that could not be taken. Not zero: the figures prove nothing.
pub(crate) fn lost_events() -> u64 {
    LOST.load(Relaxed)
}

#[cfg(test)]
mod tests;
