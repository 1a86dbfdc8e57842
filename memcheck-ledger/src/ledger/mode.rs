//! The mode of the ledger: which events are recorded.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

pub(crate) static MODE: AtomicU8 = AtomicU8::new(0);

/// The events that are recorded.
// PERF: one byte holds all flags, so that an event costs one relaxed load in a program that is not
// measured, and does not need a second load in one that is.
#[derive(Debug, Clone, Copy)]
pub struct RecordingMode(u8);

impl RecordingMode {
    const ARMED: u8 = 1;
    const TENSORS: u8 = 2;
    const SMALL: u8 = 4;
    /// Read by the functions in assembler of [`crate::c_heap`] too.
    pub const C_HEAP: u8 = 8;
    const SUM: u8 = 16;

    /// True if events are recorded.
    #[inline]
    pub fn is_armed(self) -> bool {
        self.0 & Self::ARMED != 0
    }

    /// True if host blocks of less than 1 KiB are recorded.
    #[inline]
    pub fn counts_small(self) -> bool {
        self.0 & Self::SMALL != 0
    }

    /// True if blocks of the C heap are recorded.
    #[inline]
    pub fn counts_c_heap(self) -> bool {
        self.0 & Self::C_HEAP != 0
    }

    /// True if the live bytes of all spaces are added up.
    #[inline]
    pub fn sums(self) -> bool {
        self.0 & Self::SUM != 0
    }

    /// True if host blocks are also examined as possible tensors.
    #[inline]
    pub fn follows_tensors(self) -> bool {
        self.0 & Self::TENSORS != 0
    }
}

/// The events that are recorded now.
#[inline]
pub fn mode() -> RecordingMode {
    RecordingMode(MODE.load(Relaxed))
}

/// True if events are recorded.
#[inline]
pub fn is_armed() -> bool {
    mode().is_armed()
}

/// Starts to record events.
pub fn arm() {
    MODE.fetch_or(RecordingMode::ARMED, Relaxed);
}

/// Starts to record host blocks of less than 1 KiB.
pub fn count_small() {
    MODE.fetch_or(RecordingMode::SMALL, Relaxed);
}

/// Starts to record blocks of the C heap.
pub(crate) fn count_c_heap() {
    MODE.fetch_or(RecordingMode::C_HEAP, Relaxed);
}

/// Starts to add up the live bytes of all spaces. Must be called before the ledger is armed.
pub fn count_sum() {
    MODE.fetch_or(RecordingMode::SUM, Relaxed);
}

/// Starts or stops the examination of host blocks as possible tensors.
pub fn follow_tensors(follow: bool) {
    if follow {
        MODE.fetch_or(RecordingMode::TENSORS, Relaxed);
    } else {
        MODE.fetch_and(!RecordingMode::TENSORS, Relaxed);
    }
}
