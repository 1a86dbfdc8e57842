//! Whether events are looked at, and as what.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

static MODE: AtomicU8 = AtomicU8::new(0);

/// What is done with events.
// PERF: all that an event asks for stands in one byte: one relaxed load is what
// an uninstrumented run pays, and a counting one no second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode(u8);

impl Mode {
    const ARMED: u8 = 1;
    const TENSORS: u8 = 2;
    const SMALL: u8 = 4;

    /// Whether events are looked at.
    #[inline]
    pub(crate) fn is_armed(self) -> bool {
        self.0 & Self::ARMED != 0
    }

    /// Whether host blocks of less than 1 KiB are looked at.
    #[inline]
    pub(crate) fn counts_small(self) -> bool {
        self.0 & Self::SMALL != 0
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

/// From here on host blocks of less than 1 KiB are looked at.
pub(crate) fn count_small() {
    MODE.fetch_or(Mode::SMALL, Relaxed);
}

/// From here on host blocks are looked at as what may be a tensor, or no more.
pub(crate) fn follow_tensors(follow: bool) {
    if follow {
        MODE.fetch_or(Mode::TENSORS, Relaxed);
    } else {
        MODE.fetch_and(!Mode::TENSORS, Relaxed);
    }
}
