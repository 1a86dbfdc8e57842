//! The live bytes of all spaces together, for a machine on which host and device share one memory.
//! On other machines nothing is added up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::counters::{raise, restart};
use super::{COUNTERS, mode};

static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
/// The live bytes at the last refusal.
static REFUSED_LIVE: AtomicU64 = AtomicU64::new(0);

/// The live bytes of all spaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// The highest number of live bytes.
    pub peak: u64,
    /// Live bytes at the last refusal.
    pub refused_live: u64,
}

/// Registered memory has an odd address in the ledger. It is memory of the host that is counted
/// there already.
#[inline]
fn is_summed(address: u64) -> bool {
    mode().sums() && address & 1 == 0
}

#[inline]
pub(super) fn add(address: u64, bytes: u64) {
    if is_summed(address) {
        let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
        raise(&PEAK, live);
    }
}

#[inline]
pub(super) fn subtract(address: u64, bytes: u64) {
    if is_summed(address) {
        LIVE.fetch_sub(bytes, Relaxed);
    }
}

/// Adds a block that has changed its size.
#[inline]
pub(super) fn resize(address: u64, old: u64, new: u64) {
    if new >= old {
        add(address, new - old);
    } else {
        subtract(address, old - new);
    }
}

/// Begins again with the live bytes of all spaces.
pub(super) fn reset() {
    LIVE.store(COUNTERS.iter().map(|counters| counters.live.load(Relaxed)).sum(), Relaxed);
    restart(&PEAK, &LIVE);
    REFUSED_LIVE.store(0, Relaxed);
}

pub(super) fn refuse() {
    REFUSED_LIVE.store(LIVE.load(Relaxed), Relaxed);
}

/// The live bytes of all spaces, as far as they are added up.
pub fn sum() -> Sum {
    Sum { peak: PEAK.load(Relaxed), refused_live: REFUSED_LIVE.load(Relaxed) }
}

/// Restores the peak as if no allocation had been made since it was `before`.
pub fn restore_peak(before: u64) {
    restart(&PEAK, &LIVE);
    raise(&PEAK, before);
}
