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
    tensor_allocations: AtomicU64,
    tensor_total: AtomicU64,
    tensor_frees: AtomicU64,
}

impl Shard {
    const fn new() -> Self {
        Self {
            allocated: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            tensor_allocations: AtomicU64::new(0),
            tensor_total: AtomicU64::new(0),
            tensor_frees: AtomicU64::new(0),
        }
    }
}

static ALL: [Shard; SHARDS] = [const { Shard::new() }; SHARDS];
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

/// A tensor-class block of the host was allocated on this thread.
#[inline]
pub(crate) fn tensor_allocated(bytes: u64) {
    add(|shard| &shard.tensor_allocations, 1);
    add(|shard| &shard.tensor_total, bytes);
}

/// A tensor-class block of the host was freed on this thread.
#[inline]
pub(crate) fn tensor_freed() {
    add(|shard| &shard.tensor_frees, 1);
}

/// Sums: allocations, bytes, frees.
pub(crate) fn tensor_events() -> [u64; 3] {
    let used = NEXT.load(Relaxed).clamp(1, SHARDS);
    let mut sums = [0u64; 3];
    for shard in &ALL[..used] {
        sums[0] = sums[0].wrapping_add(shard.tensor_allocations.load(Relaxed));
        sums[1] = sums[1].wrapping_add(shard.tensor_total.load(Relaxed));
        sums[2] = sums[2].wrapping_add(shard.tensor_frees.load(Relaxed));
    }
    sums
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
