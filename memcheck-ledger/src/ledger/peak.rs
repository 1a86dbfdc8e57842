//! Windows: the highest number of live bytes within a part of the body. A window does not change
//! the peak of the whole body.

use std::sync::atomic::Ordering::Relaxed;

use memcheck_limits::space::Space;

use super::COUNTERS;
use super::counters::{Counters, raise, restart};
use crate::block::index;

/// A window over the peak of one space, from its creation until it is closed, discarded or dropped.
#[derive(Debug)]
pub struct PeakWindow {
    space: Space,
    before: u64,
    /// The `earlier_peak` of the counters before the window.
    earlier: u64,
}

fn counters(space: Space) -> Option<&'static Counters> {
    index(space).map(|index| &COUNTERS[index])
}

impl PeakWindow {
    /// Resets the peak.
    pub fn open(space: Space) -> Self {
        let (before, earlier) = counters(space).map_or((0, 0), |counters| {
            (restart(&counters.peak, &counters.live), counters.earlier_peak.swap(0, Relaxed))
        });
        Self { space, before, earlier }
    }

    /// The space whose peak this is.
    pub fn space(&self) -> Space {
        self.space
    }

    /// The peak of the body before the window.
    pub fn before(&self) -> u64 {
        self.before.max(self.earlier)
    }

    /// Restores the peak as if no allocation had been made in the window.
    pub fn discard(self) {
        if let Some(counters) = counters(self.space) {
            restart(&counters.peak, &counters.live);
            counters.earlier_peak.store(0, Relaxed);
        }
        // `drop` restores the values from before the window.
    }

    /// The peak within the window, even if it was reset during the window.
    pub fn close(self) -> u64 {
        counters(self.space).map_or(0, |counters| {
            counters.peak.load(Relaxed).max(counters.earlier_peak.load(Relaxed))
        })
    }
}

/// However the window ends, the peak from before it is restored.
impl Drop for PeakWindow {
    fn drop(&mut self) {
        if let Some(counters) = counters(self.space) {
            raise(&counters.peak, self.before);
            raise(&counters.earlier_peak, self.earlier);
        }
    }
}
