//! The ledger: the exact live bytes of every space at every moment.
//!
//! An event changes the table of live blocks and the counters of its space, and a free can add to
//! the queue of deaths. All of these changes are atomic operations on memory that was mapped before
//! the first event. They take no lock, allocate no memory and format no text, so that they can run
//! inside an allocator, in a signal handler, in a forked child and while a thread ends.
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
//! In a run with attribution a block also has a context (call stack and scope, [`crate::site`]),
//! and every event is passed on to [`crate::events`].
//!
//! The peak is exact under concurrency: each addition to `live` yields the new value, and every
//! such value is offered to `peak`. Therefore `peak` is the maximum over the order in which the
//! counter really changed.

mod bucket;
mod census;
mod counters;
mod deaths;
pub(crate) mod mode;
mod peak;
mod shard;
mod sum;
pub mod table;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use memcheck_limits::space::Space;
use rustc_hash::FxHashMap;

use self::bucket::{COUNTED, Words};
use self::counters::{Counters, raise, restart};
use self::deaths::Deaths;
use self::table::BlockTable;
use crate::block::{Block, Origin, SPACES, index};
use crate::events::{self, Event};
use crate::site;

pub use census::{Census, Changes, census};
pub use counters::CounterSnapshot;
pub(crate) use mode::count_c_heap;
pub use mode::{RecordingMode, arm, count_small, count_sum, follow_tensors, is_armed, mode};
pub use peak::PeakWindow;
pub use shard::ThreadCounters;
pub use sum::{restore_peak, sum};

/// The number of live blocks for which the ledger has room.
pub const CAPACITY: u64 = table::CAPACITY as u64;

static BLOCKS: BlockTable = BlockTable::new();
static DEATHS: Deaths = Deaths::new();
static COUNTERS: [Counters; SPACES] = [const { Counters::new() }; SPACES];
/// The iteration in which new blocks are born; 0 is the set-up.
static ITERATION: AtomicU32 = AtomicU32::new(0);
/// The phase of the body in which new blocks are born, as the bits of their first word.
static PHASE: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);
/// Those of [`LOST`] that belong to a GPU that the ledger does not count.
static LOST_OF_UNKNOWN_GPUS: AtomicU64 = AtomicU64::new(0);

/// The words of a block that is allocated now.
#[inline]
fn words_of(block: Block) -> Words {
    let [first, second] = block.words();
    [first | PHASE.load(Relaxed), second]
}

/// The origin of a block that this thread allocates now.
#[inline]
fn current_origin() -> Origin {
    Origin { birth: ITERATION.load(Relaxed), context: site::current_context(), shape: 0 }
}

/// Maps the table. Events before [`arm`] are ignored.
pub fn prepare() -> std::io::Result<()> {
    DEATHS.map()?;
    BLOCKS.map()
}

/// Begins an iteration: new blocks are born in it, and its peak starts at the live bytes.
pub fn begin_iteration(iteration: u32) {
    ITERATION.store(iteration, Relaxed);
    events::push(|| Event::Iteration(iteration));
    for counters in &COUNTERS {
        restart(&counters.iteration_peak, &counters.live);
    }
}

/// Ends the iteration. Until the next one begins, allocations are not part of its figures, although
/// this iteration is recorded as their birth.
pub fn end_iteration() {
    events::push(|| Event::Iteration(0));
}

/// The iteration in which new blocks are born; 0 is the set-up.
pub fn iteration() -> u32 {
    ITERATION.load(Relaxed)
}

/// Resets all figures except the live bytes of devices. Must be called when the body begins. Host
/// blocks from before the body are forgotten, because they belong to the instrument and to thread
/// pools. Allocates, so the caller must be quiet.
pub fn reset() {
    ITERATION.store(0, Relaxed);
    PHASE.store(0, Relaxed);
    let mut before = Vec::new();
    each(|address, block| before.extend((!block.space.is_of_driver()).then_some(address)));
    for address in before {
        if let Some(words) = BLOCKS.remove(address, None) {
            COUNTERS[Block::index_of(words)].live.fetch_sub(Block::size_of(words), Relaxed);
        }
    }
    for (index, counters) in COUNTERS.iter().enumerate() {
        counters.reset(shard::totals(index));
    }
    sum::reset();
}

/// Resets the figures of a space that a canary was the first to use, if it has no live blocks.
pub fn reset_unused(space: Space) {
    if let Some(index) = index(space)
        && COUNTERS[index].live.load(Relaxed) == 0
    {
        COUNTERS[index].reset(shard::totals(index));
    }
}

/// Resets the peak of a space. Its former value stays part of the peak of the whole body.
pub fn reset_peak(space: Space) {
    if let Some(Counters { live, peak, earlier_peak, .. }) = index(space).map(|at| &COUNTERS[at]) {
        // Raised before the reset too, so that a reader on another thread never sees a lower peak.
        raise(earlier_peak, peak.load(Relaxed));
        raise(earlier_peak, restart(peak, live));
    }
}

/// Sets the phase in which new blocks are born, on all threads; 0 is the body outside of phases.
pub fn set_phase(phase: u8) {
    PHASE.store(Block::phase_bits(phase), Relaxed);
}

/// The live bytes by space and by the phase in which they were allocated. Allocates, so the caller
/// must be quiet.
pub fn live_by_phase() -> FxHashMap<(Space, u8), u64> {
    let mut live: FxHashMap<(Space, u8), u64> = FxHashMap::default();
    each_words(|_, words| {
        let phase = Block::phase_of(words);
        if phase != 0 {
            let space = crate::block::space(Block::index_of(words));
            *live.entry((space, phase)).or_default() += Block::size_of(words);
        }
    });
    live
}

/// The peak of a space since the last call, or since the body began. The next peak starts at the
/// live bytes.
pub fn take_phase_peak(space: Space) -> u64 {
    let counters = index(space).map(|index| &COUNTERS[index]);
    counters.map_or(0, |counters| restart(&counters.phase_peak, &counters.live))
}

/// Adds a block.
pub fn allocated(space: Space, address: u64, size: u64) {
    let Some(index) = index(space) else {
        count_event_of_unknown_gpu();
        return;
    };
    let block = Block { size, space, origin: current_origin() };
    let is_taken = shard::with(|shard| {
        let is_taken = BLOCKS.insert(address, words_of(block), shard.kept());
        // A block without a place is not counted, because its free could not subtract it.
        if is_taken {
            COUNTERS[index].add(size);
            sum::add(address, size);
            shard.count_allocation(index, size);
        }
        is_taken
    });
    if is_taken {
        events::push(|| Event::Allocated(block));
    } else {
        count_lost_event();
    }
}

/// Removes a block that is about to be freed. Must be called before, because another thread can get
/// the address as soon as the block is free. `None` if the ledger has not counted its allocation;
/// such a block is ignored.
pub fn freed(address: u64) -> Option<Block> {
    let words = shard::with(|shard| {
        let words = BLOCKS.remove(address, shard.kept())?;
        let index = Block::index_of(words);
        COUNTERS[index].live.fetch_sub(Block::size_of(words), Relaxed);
        sum::subtract(address, Block::size_of(words));
        shard.count_free(index);
        Some(words)
    })?;
    push_death(words);
    events::push(|| Event::Freed(Block::from_words(words)));
    Some(Block::from_words(words))
}

/// Adds the death of a block to the queue for the next census, if a census has counted the block.
#[inline]
fn push_death(words: Words) {
    if words[0] & COUNTED != 0 {
        DEATHS.push(words);
    }
}

/// Adds `block` again, because the driver refused to free it.
pub fn free_failed(address: u64, block: Block) {
    if let Some(index) = index(block.space) {
        COUNTERS[index].failed_frees.fetch_add(1, Relaxed);
        shard::with(|shard| shard.uncount_free(index));
        if BLOCKS.insert(address, block.unfreed_words(), None) {
            COUNTERS[index].add(block.size);
            sum::add(address, block.size);
            events::push(|| Event::Kept(block));
        } else {
            count_lost_event();
        }
    }
}

/// A block that is about to be moved or resized.
#[derive(Debug, Clone, Copy)]
pub struct Taken(Words);

/// Takes a block that is about to be moved or resized out of the table. Its bytes stay counted as
/// live until [`put_back`], [`moved`] or [`discarded`], so that the peak neither misses the block
/// nor counts it twice.
pub fn taken(address: u64) -> Option<Taken> {
    shard::with(|shard| BLOCKS.remove(address, shard.kept())).map(Taken)
}

/// Puts a block back that was [`taken`] but could not be moved.
pub fn put_back(address: u64, Taken(words): Taken) {
    if !BLOCKS.insert(address, words, None) {
        count_lost_event();
    }
}

/// Adds a block that was [`taken`] and is now at `address`, with `size` bytes in `space`. If the
/// ledger does not distinguish that space, the block is removed and the event counts as lost.
pub(crate) fn moved(Taken(words): Taken, space: Space, address: u64, size: u64) {
    let Some(index) = index(space) else {
        count_event_of_unknown_gpu();
        discarded(Taken(words));
        return;
    };
    let (old, old_index) = (Block::from_words(words), Block::index_of(words));
    let block = Block { size, space, origin: current_origin() };
    let is_taken = shard::with(|shard| {
        shard.count_allocation(index, size);
        BLOCKS.insert(address, words_of(block), shard.kept())
    });
    if !is_taken {
        count_lost_event();
    }
    push_death(words);
    // A pair, so that no event of another thread sees the live bytes between the two.
    events::push_pair(|| (Event::Freed(old), Event::Allocated(block)));
    sum::resize(address, old.size, size);
    if index != old_index {
        COUNTERS[index].add(size);
        COUNTERS[old_index].live.fetch_sub(old.size, Relaxed);
    } else if size >= old.size {
        COUNTERS[index].add(size - old.size);
    } else {
        COUNTERS[index].live.fetch_sub(old.size - size, Relaxed);
    }
}

/// Removes a block that was [`taken`], because blocks of its new size are not counted.
pub fn discarded(Taken(words): Taken) {
    let index = Block::index_of(words);
    COUNTERS[index].live.fetch_sub(Block::size_of(words), Relaxed);
    // Only heap blocks are moved, and their addresses are even.
    sum::subtract(0, Block::size_of(words));
    shard::with(|shard| shard.count_free(index));
    push_death(words);
    events::push(|| Event::Freed(Block::from_words(words)));
}

/// The size of the live block at `address`, if there is one.
pub fn size_of(address: u64) -> Option<u64> {
    BLOCKS.get(address).map(|words| Block::from_words(words).size)
}

/// The space of the live block at `address`, if there is one.
pub fn space_of(address: u64) -> Option<Space> {
    BLOCKS.get(address).map(|words| Block::from_words(words).space)
}

/// Records that the live block at `address` contains a tensor of `bytes`. Returns true if the
/// tensor is as large as the block. In this case the block gets the shape of the tensor, unless it
/// already has a shape.
pub fn shaped(address: u64, bytes: u64, shape: impl FnOnce() -> u16) -> bool {
    let mut whole = false;
    let mut before = None;
    BLOCKS.update(address, |words| {
        let block = Block::from_words(words);
        whole = block.size == bytes;
        if !whole || block.origin.shape != 0 {
            return words[1];
        }
        let shape = shape();
        before = Some((block, shape));
        Origin { shape, ..block.origin }.pack()
    });
    if let Some((block, shape)) = before {
        events::push(|| Event::Shaped(block, shape));
    }
    whole
}

/// Passes every live block and its address to `visit`.
pub fn each(mut visit: impl FnMut(u64, Block)) {
    each_words(|address, words| visit(address, Block::from_words(words)));
}

/// Visits the blocks that are live because the driver has refused to free them.
pub fn each_unfreed(mut visit: impl FnMut(u64, Block)) {
    each_words(|address, words| {
        if Block::is_unfreed(words) {
            visit(address, Block::from_words(words));
        }
    });
}

fn each_words(mut visit: impl FnMut(u64, Words)) {
    BLOCKS.each(|address, words| {
        // Another thread is removing this block.
        if words[0] != 0 {
            visit(address, words);
        }
    });
}

/// Records that the device had no memory for `size` bytes.
pub fn refused(space: Space, size: u64) {
    if let Some(index) = index(space) {
        COUNTERS[index].refuse(size, shard::totals(index));
        sum::refuse();
        events::push(|| Event::Refused(Block { size, space, origin: current_origin() }));
    }
}

/// Forgets the last refusal, because the caller has handled it.
pub fn forget_refusal(space: Space) {
    if let Some(counters) = index(space).map(|index| &COUNTERS[index]) {
        counters.refused_bytes.store(0, Relaxed);
    }
}

/// Counts an event that the ledger had no room for.
#[cold]
fn count_lost_event() {
    LOST.fetch_add(1, Relaxed);
}

/// Counts an event of a GPU that has no counters, or whose number the driver did not return.
#[cold]
pub fn count_event_of_unknown_gpu() {
    LOST.fetch_add(1, Relaxed);
    LOST_OF_UNKNOWN_GPUS.fetch_add(1, Relaxed);
}

/// The counters of a space.
pub fn snapshot(space: Space) -> CounterSnapshot {
    index(space).map(|index| COUNTERS[index].snapshot(shard::totals(index))).unwrap_or_default()
}

/// The live bytes of the heap of the process, as far as it is counted.
pub fn heap() -> u64 {
    let spaces = [Space::Host, Space::HostSmall, Space::CHeap].into_iter().filter_map(index);
    spaces.map(|index| COUNTERS[index].live.load(Relaxed)).sum()
}

/// The number of events that could not be recorded. If it is not zero, the figures are not valid.
pub fn lost_events() -> u64 {
    LOST.load(Relaxed)
}

/// The number of [`lost_events`] that belong to a GPU that the ledger does not count.
pub fn events_of_unknown_gpus() -> u64 {
    LOST_OF_UNKNOWN_GPUS.load(Relaxed)
}

#[cfg(test)]
mod tests;
