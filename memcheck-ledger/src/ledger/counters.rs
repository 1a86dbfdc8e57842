//! The counters of one space: live bytes, peaks and the last refusal. Each thread counts its own
//! allocations and frees in a shard ([`super::shard`]).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::shard::ThreadTotals;

/// The counters of one space, on cache lines that they share with no other data.
#[repr(align(128))]
pub(super) struct Counters {
    pub(super) live: AtomicU64,
    pub(super) peak: AtomicU64,
    /// The highest of the peaks before each reset of the peak since the body began.
    pub(super) earlier_peak: AtomicU64,
    pub(super) iteration_peak: AtomicU64,
    /// The peak since a phase of the body began or ended.
    pub(super) phase_peak: AtomicU64,
    pub(super) failed_frees: AtomicU64,
    pub(super) refused_bytes: AtomicU64,
    refused_live: AtomicU64,
    /// The number of allocations between the last [`reset`](Self::reset) and the last refusal.
    refused_after: AtomicU64,
    /// The totals of the threads at the last reset.
    allocations_before: AtomicU64,
    allocated_before: AtomicU64,
    frees_before: AtomicU64,
}

impl Counters {
    pub(super) const fn new() -> Self {
        Self {
            live: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            earlier_peak: AtomicU64::new(0),
            iteration_peak: AtomicU64::new(0),
            phase_peak: AtomicU64::new(0),
            failed_frees: AtomicU64::new(0),
            refused_bytes: AtomicU64::new(0),
            refused_live: AtomicU64::new(0),
            refused_after: AtomicU64::new(0),
            allocations_before: AtomicU64::new(0),
            allocated_before: AtomicU64::new(0),
            frees_before: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn add(&self, bytes: u64) {
        let live = self.live.fetch_add(bytes, Relaxed) + bytes;
        raise(&self.peak, live);
        raise(&self.iteration_peak, live);
        raise(&self.phase_peak, live);
    }

    /// Resets the counters: peaks start at the live bytes, and counts at the totals of the threads.
    pub(super) fn reset(&self, totals: ThreadTotals) {
        let Self {
            live,
            peak,
            earlier_peak,
            iteration_peak,
            phase_peak,
            failed_frees,
            refused_bytes,
            refused_live,
            refused_after,
            allocations_before,
            allocated_before,
            frees_before,
        } = self;
        restart(peak, live);
        restart(iteration_peak, live);
        restart(phase_peak, live);
        for counter in [earlier_peak, failed_frees, refused_bytes, refused_live, refused_after] {
            counter.store(0, Relaxed);
        }
        allocations_before.store(totals.allocations, Relaxed);
        allocated_before.store(totals.allocated_total, Relaxed);
        frees_before.store(totals.frees, Relaxed);
    }

    /// Records that the device refused `bytes` after this number of allocations.
    pub(super) fn refuse(&self, bytes: u64, totals: ThreadTotals) {
        let after = totals.allocations.wrapping_sub(self.allocations_before.load(Relaxed));
        self.refused_bytes.store(bytes, Relaxed);
        self.refused_live.store(self.live.load(Relaxed), Relaxed);
        self.refused_after.store(after, Relaxed);
    }

    pub(super) fn snapshot(&self, totals: ThreadTotals) -> CounterSnapshot {
        let peak = self.peak.load(Relaxed);
        let since = |total: u64, before: &AtomicU64| total.wrapping_sub(before.load(Relaxed));
        CounterSnapshot {
            live: self.live.load(Relaxed),
            peak,
            whole_peak: peak.max(self.earlier_peak.load(Relaxed)),
            iteration_peak: self.iteration_peak.load(Relaxed),
            allocations: since(totals.allocations, &self.allocations_before),
            allocated_total: since(totals.allocated_total, &self.allocated_before),
            frees: since(totals.frees, &self.frees_before),
            failed_frees: self.failed_frees.load(Relaxed),
            refused_bytes: self.refused_bytes.load(Relaxed),
            refused_live: self.refused_live.load(Relaxed),
            refused_after: self.refused_after.load(Relaxed),
        }
    }
}

/// Raises a peak to `live` if `live` is higher.
///
/// PERF: most values are below the peak, which a plain load shows; `fetch_max` alone would be a
/// locked instruction each time. No value is missed, because a peak only rises between two resets,
/// so that the loaded value is a lower bound of the peak.
#[inline]
pub(super) fn raise(peak: &AtomicU64, live: u64) {
    if peak.load(Relaxed) < live {
        peak.fetch_max(live, Relaxed);
    }
}

/// Resets a peak to the live bytes and returns its former value. An allocation that another thread
/// makes at the same time either is in the old peak or raises the new one.
pub(super) fn restart(peak: &AtomicU64, live: &AtomicU64) -> u64 {
    let before = peak.swap(0, Relaxed);
    raise(peak, live.load(Relaxed));
    before
}

/// The figures of one space at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterSnapshot {
    /// Live bytes.
    pub live: u64,
    /// The peak since it was last reset.
    pub peak: u64,
    /// The peak since the body began, regardless of resets.
    pub whole_peak: u64,
    /// The peak of the current iteration.
    pub iteration_peak: u64,
    /// The number of allocations since the body began.
    pub allocations: u64,
    /// The bytes of these allocations.
    pub allocated_total: u64,
    /// The number of frees since the body began.
    pub frees: u64,
    /// The number of frees that the driver refused.
    pub failed_frees: u64,
    /// The bytes of the last refused allocation; 0 if there was none.
    pub refused_bytes: u64,
    /// Live bytes at the last refusal.
    pub refused_live: u64,
    /// The value of `allocations` at the last refusal.
    pub refused_after: u64,
}
