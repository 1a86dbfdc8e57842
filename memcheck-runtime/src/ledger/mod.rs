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

mod bucket;
mod census;
mod counters;
mod deaths;
mod mode;
mod peak;
mod shard;
pub(crate) mod table;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use memcheck_core::space::Space;

use self::bucket::{COUNTED, Words};
use self::counters::{Counters, raise, restart};
use self::deaths::Deaths;
use self::table::Table;
use crate::block::{Block, Origin, SPACES, index};
use crate::site;
use crate::trace::{self, Event};

pub(crate) use census::{Census, Changes, census};
pub(crate) use counters::Snapshot;
pub(crate) use mode::{Mode, arm, count_small, follow_tensors, is_armed, mode};
pub(crate) use peak::PeakWindow;

/// Live blocks that the ledger has room for.
pub(crate) const CAPACITY: u64 = table::CAPACITY as u64;

static BLOCKS: Table = Table::new();
static DEATHS: Deaths = Deaths::new();
static COUNTERS: [Counters; SPACES] = [const { Counters::new() }; SPACES];
/// The iteration in which blocks are born now; 0 is the set-up.
static ITERATION: AtomicU32 = AtomicU32::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

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
    DEATHS.map()?;
    BLOCKS.map()
}

/// From here on new blocks are born in `iteration`, and the peak within the
/// iteration starts from what is live.
pub(crate) fn begin_iteration(iteration: u32) {
    ITERATION.store(iteration, Relaxed);
    trace::push(|| Event::Iteration(iteration));
    for counters in &COUNTERS {
        restart(&counters.iteration_peak, &counters.live);
    }
}

/// The iteration is over: what is allocated from here on is no part of its
/// figures, though it is born in it.
pub(crate) fn end_iteration() {
    trace::push(|| Event::Iteration(0));
}

/// The iteration in which blocks are born now; 0 is the set-up.
#[cfg(feature = "cuda")]
pub(crate) fn iteration() -> u32 {
    ITERATION.load(Relaxed)
}

/// Starts every figure anew, apart from what is live on devices: the body begins. Host blocks
/// from before it are forgotten, because they belong to the instrument and to thread pools.
/// Allocates: the caller is quiet.
pub(crate) fn reset() {
    ITERATION.store(0, Relaxed);
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
}

/// Starts the figures of a space anew in which nothing is live: a canary was
/// the first to use it.
pub(crate) fn reset_unused(space: Space) {
    if let Some(index) = index(space)
        && COUNTERS[index].live.load(Relaxed) == 0
    {
        COUNTERS[index].reset(shard::totals(index));
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
    let Some(index) = index(space) else {
        lost_one();
        return;
    };
    let block = Block { size, space, origin: here() };
    let is_taken = shard::with(|shard| {
        let is_taken = BLOCKS.insert(address, block.words(), shard.kept());
        if is_taken {
            COUNTERS[index].add(size);
            shard.count_allocation(index, size);
        }
        is_taken
    });
    if is_taken {
        trace::push(|| Event::Allocated(block));
    } else {
        lost_one();
    }
}

/// A block is about to be freed. `None` if it was not allocated under the
/// ledger's eyes: then it is nobody's.
#[inline]
pub(crate) fn freed(address: u64) -> Option<Block> {
    let words = shard::with(|shard| {
        let words = BLOCKS.remove(address, shard.kept())?;
        let index = Block::index_of(words);
        COUNTERS[index].live.fetch_sub(Block::size_of(words), Relaxed);
        shard.count_free(index);
        Some(words)
    })?;
    died(words);
    trace::push(|| Event::Freed(Block::of(words)));
    Some(Block::of(words))
}

/// Notes the death of a block for the next census, if one has counted it.
#[inline]
fn died(words: Words) {
    if words[0] & COUNTED != 0 {
        DEATHS.push(words);
    }
}

/// The free of `block` was refused: it is live after all.
#[cfg(any(feature = "cuda", test))]
pub(crate) fn free_failed(address: u64, block: Block) {
    if let Some(index) = index(block.space) {
        COUNTERS[index].failed_frees.fetch_add(1, Relaxed);
        shard::with(|shard| shard.uncount_free(index));
        if BLOCKS.insert(address, block.words(), None) {
            COUNTERS[index].add(block.size);
            trace::push(|| Event::Kept(block));
        } else {
            lost_one();
        }
    }
}

/// A block that is about to be moved or resized.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken(Words);

/// A block is about to be moved or resized. It stays live meanwhile, so that
/// the peak sees neither none nor both.
#[inline]
pub(crate) fn taken(address: u64) -> Option<Taken> {
    shard::with(|shard| BLOCKS.remove(address, shard.kept())).map(Taken)
}

/// A block that was [`taken`] could not be moved.
#[inline]
pub(crate) fn put_back(address: u64, Taken(words): Taken) {
    if !BLOCKS.insert(address, words, None) {
        lost_one();
    }
}

/// A block that was [`taken`] now lies at `address` with `size` bytes, in `space`.
#[inline]
pub(crate) fn moved(Taken(words): Taken, space: Space, address: u64, size: u64) {
    let Some(index) = index(space) else { return };
    let (old, old_index) = (Block::of(words), Block::index_of(words));
    let block = Block { size, space, origin: here() };
    let is_taken = shard::with(|shard| {
        shard.count_allocation(index, size);
        BLOCKS.insert(address, block.words(), shard.kept())
    });
    if !is_taken {
        lost_one();
    }
    died(words);
    trace::push_pair(|| (Event::Freed(old), Event::Allocated(block)));
    if index != old_index {
        COUNTERS[index].add(size);
        COUNTERS[old_index].live.fetch_sub(old.size, Relaxed);
    } else if size >= old.size {
        COUNTERS[index].add(size - old.size);
    } else {
        COUNTERS[index].live.fetch_sub(old.size - size, Relaxed);
    }
}

/// A block that was [`taken`] is no longer one that is counted.
#[inline]
pub(crate) fn left(Taken(words): Taken) {
    let index = Block::index_of(words);
    COUNTERS[index].live.fetch_sub(Block::size_of(words), Relaxed);
    shard::with(|shard| shard.count_free(index));
    died(words);
    trace::push(|| Event::Freed(Block::of(words)));
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
            return words[1];
        }
        let shape = shape();
        before = Some((block, shape));
        Origin { shape, ..block.origin }.pack()
    });
    if let Some((block, shape)) = before {
        trace::push(|| Event::Shaped(block, shape));
    }
    whole
}

/// Shows every live block and its address to `see`.
pub(crate) fn each(mut see: impl FnMut(u64, Block)) {
    each_in_words(|address, words| see(address, Block::of(words)));
}

fn each_in_words(mut see: impl FnMut(u64, Words)) {
    BLOCKS.each(|address, words| {
        // Another thread is taking it out.
        if words[0] != 0 {
            see(address, words);
        }
    });
}

/// The device had no memory for `size` bytes.
#[cfg(feature = "cuda")]
pub(crate) fn refused(space: Space, size: u64) {
    if let Some(index) = index(space) {
        COUNTERS[index].refuse(size, shard::totals(index));
        trace::push(|| Event::Refused(Block { size, space, origin: here() }));
    }
}

/// Forgets the last refusal: whoever asked has lived with it.
pub(crate) fn forget_refusal(space: Space) {
    if let Some(counters) = index(space).map(|index| &COUNTERS[index]) {
        counters.refused_bytes.store(0, Relaxed);
    }
}

/// An event was seen that the ledger could not take.
#[cold]
pub(crate) fn lost_one() {
    LOST.fetch_add(1, Relaxed);
}

/// The figures of `space` now.
pub(crate) fn snapshot(space: Space) -> Snapshot {
    index(space).map(|index| COUNTERS[index].snapshot(shard::totals(index))).unwrap_or_default()
}

/// Events that could not be taken. Not zero: the figures prove nothing.
pub(crate) fn lost_events() -> u64 {
    LOST.load(Relaxed)
}

#[cfg(test)]
mod tests;
