//! Shards: each thread counts its own allocations, bytes and frees for each space.
//!
//! Only its own thread writes to a shard, with plain loads and stores of relaxed atomics, so that
//! counting costs additions and no traffic between cores. Readers sum over all shards. All threads
//! beyond the number of shards share the last one, which they change by read-modify-write
//! operations. Shards are never reused, so that their totals outlive their threads.
//!
//! Live bytes are not in a shard, because a peak over threads needs the order in which the total
//! changed.

use std::cell::Cell;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};

use memcheck_limits::space::Space;

use super::bucket::KeptSlot;
use crate::block::{SPACES, index};

const SHARDS: usize = 512;
static SHARED: &Shard = &ALL[SHARDS - 1];

/// The figures of one thread, on cache lines that they share with no other data.
#[repr(align(128))]
pub(super) struct Shard {
    kept: KeptSlot,
    traffic: [Traffic; SPACES],
}

/// Allocations and frees of one space on one thread.
#[derive(Debug)]
struct Traffic {
    allocations: AtomicU64,
    allocated_total: AtomicU64,
    frees: AtomicU64,
}

/// Allocations and frees of one space on all threads.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ThreadTotals {
    pub(super) allocations: u64,
    pub(super) allocated_total: u64,
    pub(super) frees: u64,
}

static ALL: [Shard; SHARDS] = [const { Shard::new() }; SHARDS];
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<Option<&'static Shard>> = const { Cell::new(None) };
}

impl Shard {
    const fn new() -> Self {
        Self {
            kept: KeptSlot::new(),
            traffic: [const {
                Traffic {
                    allocations: AtomicU64::new(0),
                    allocated_total: AtomicU64::new(0),
                    frees: AtomicU64::new(0),
                }
            }; SPACES],
        }
    }

    #[inline]
    fn is_shared(&self) -> bool {
        std::ptr::eq(self, SHARED)
    }

    #[inline]
    fn add(&self, counter: &AtomicU64, amount: u64) {
        if self.is_shared() {
            counter.fetch_add(amount, Relaxed);
        } else {
            counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
        }
    }

    /// The table slot that this thread keeps; `None` if other threads use this shard too.
    #[inline]
    pub(super) fn kept(&self) -> Option<&KeptSlot> {
        (!self.is_shared()).then_some(&self.kept)
    }

    #[inline]
    pub(super) fn count_allocation(&self, space: usize, bytes: u64) {
        let traffic = &self.traffic[space];
        self.add(&traffic.allocations, 1);
        self.add(&traffic.allocated_total, bytes);
    }

    #[inline]
    pub(super) fn count_free(&self, space: usize) {
        self.add(&self.traffic[space].frees, 1);
    }

    /// Reverts the count of a free, which any thread may have counted.
    pub(super) fn uncount_free(&self, space: usize) {
        self.add(&self.traffic[space].frees, 1u64.wrapping_neg());
    }
}

#[cold]
#[inline(never)]
fn claim() -> &'static Shard {
    let shard = &ALL[NEXT.fetch_add(1, Relaxed).min(SHARDS - 1)];
    MINE.set(Some(shard));
    shard
}

#[inline]
fn mine() -> &'static Shard {
    MINE.get().unwrap_or_else(claim)
}

/// Passes the shard of this thread to `work`.
///
/// Until `work` returns, the thread is assigned to the shared shard, so that a signal handler that
/// allocates in the meantime does not change this one.
#[inline]
pub(super) fn with<R>(work: impl FnOnce(&Shard) -> R) -> R {
    let shard = mine();
    MINE.set(Some(SHARED));
    // A signal handler runs on this thread, so that only the compiler must keep the order.
    compiler_fence(SeqCst);
    let result = work(shard);
    compiler_fence(SeqCst);
    MINE.set(Some(shard));
    result
}

/// The counters of one thread, which other threads can read.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCounters(&'static [Traffic; SPACES]);

impl ThreadCounters {
    /// Those of the current thread; `None` if it shares them with others.
    pub fn of_this_thread() -> Option<Self> {
        let shard = mine();
        (!shard.is_shared()).then_some(Self(&shard.traffic))
    }

    /// The allocations of the thread in a space, since it started.
    pub fn allocations(self, space: Space) -> u64 {
        index(space).map_or(0, |space| self.0[space].allocations.load(Relaxed))
    }
}

/// All shards that threads use, and the shared shard.
fn used() -> impl Iterator<Item = &'static Shard> {
    ALL[..NEXT.load(Relaxed).min(SHARDS - 1)].iter().chain([SHARED])
}

/// The allocations and frees of a space.
pub(super) fn totals(space: usize) -> ThreadTotals {
    used().fold(ThreadTotals::default(), |sum, shard| {
        let traffic = &shard.traffic[space];
        ThreadTotals {
            allocations: sum.allocations.wrapping_add(traffic.allocations.load(Relaxed)),
            allocated_total: sum
                .allocated_total
                .wrapping_add(traffic.allocated_total.load(Relaxed)),
            frees: sum.frees.wrapping_add(traffic.frees.load(Relaxed)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_counts_its_own_allocations_only() {
        let read = || ThreadCounters::of_this_thread().expect("few threads are used");
        let (own, space) = (read(), Space::Managed(3));
        let other = std::thread::spawn(move || {
            with(|shard| shard.count_allocation(index(space).unwrap(), 10));
            read()
        });
        let other = other.join().unwrap();
        assert_eq!((own.allocations(space), other.allocations(space)), (0, 1));
    }

    #[test]
    fn an_event_inside_another_uses_the_shared_shard() {
        with(|outer| {
            assert!(!outer.is_shared() || NEXT.load(Relaxed) >= SHARDS);
            with(|inner| assert!(inner.is_shared() && inner.kept().is_none()));
        });
        let before = totals(SPACES - 1);
        with(|outer| {
            outer.count_allocation(SPACES - 1, 10);
            with(|inner| inner.count_allocation(SPACES - 1, 5));
            outer.count_free(SPACES - 1);
        });
        let now = totals(SPACES - 1);
        assert_eq!(
            [
                now.allocations - before.allocations,
                now.allocated_total - before.allocated_total,
                now.frees - before.frees
            ],
            [2, 15, 1]
        );
    }
}
