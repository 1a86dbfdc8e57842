//! Host blocks below the tensor class: totals only, a shard for each thread.
//!
//! A shard is written by its one thread, with plain loads and stores of
//! relaxed atomics, so that counting a 64-byte block costs two additions and
//! no traffic between cores. Threads beyond the last shard share that one and
//! pay for it with read-modify-write operations. Shards are never given back:
//! their totals outlive their thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const SHARDS: usize = 512;
const SHARED: &Shard = &ALL[SHARDS - 1];

#[repr(align(128))]
struct Shard {
    allocated: AtomicU64,
    freed: AtomicU64,
}

static ALL: [Shard; SHARDS] =
    [const { Shard { allocated: AtomicU64::new(0), freed: AtomicU64::new(0) } }; SHARDS];
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<Option<&'static Shard>> = const { Cell::new(None) };
}

#[cold]
#[inline(never)]
fn claim() -> &'static Shard {
    let shard = &ALL[NEXT.fetch_add(1, Relaxed).min(SHARDS - 1)];
    MINE.with(|mine| mine.set(Some(shard)));
    shard
}

#[inline]
fn add(pick: impl Fn(&Shard) -> &AtomicU64, bytes: u64) {
    let shard = MINE.with(Cell::get).unwrap_or_else(claim);
    let counter = pick(shard);
    if std::ptr::eq(shard, SHARED) {
        counter.fetch_add(bytes, Relaxed);
    } else {
        counter.store(counter.load(Relaxed).wrapping_add(bytes), Relaxed);
    }
}

/// A small block was allocated on this thread.
#[inline]
pub(crate) fn small_allocated(bytes: u64) {
    add(|shard| &shard.allocated, bytes);
}

/// A small block was freed on this thread, whoever allocated it.
#[inline]
pub(crate) fn small_freed(bytes: u64) {
    add(|shard| &shard.freed, bytes);
}

/// Bytes in small blocks. Negative where blocks from before counting were freed.
pub(crate) fn small_live() -> i64 {
    let used = NEXT.load(Relaxed).clamp(1, SHARDS);
    let mut live: i64 = 0;
    for shard in &ALL[..used] {
        live = live
            .wrapping_add(shard.allocated.load(Relaxed) as i64)
            .wrapping_sub(shard.freed.load(Relaxed) as i64);
    }
    live
}
