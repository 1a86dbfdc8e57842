//! The highest number of live bytes within a part of the body, and the peak of
//! the whole afterwards as if nobody had looked.

use std::sync::atomic::Ordering::Relaxed;

use memcheck_core::space::Space;

use super::COUNTERS;
use super::counters::{Counters, raise, restart};
use crate::block::index;

/// A look at the peak of one space, from here to where it is closed.
#[derive(Debug)]
pub(crate) struct PeakWindow {
    space: Space,
    before: u64,
    /// The peak that a reset before has put aside.
    earlier: u64,
}

fn counters(space: Space) -> Option<&'static Counters> {
    index(space).map(|index| &COUNTERS[index])
}

impl PeakWindow {
    /// Starts the peak anew.
    pub(crate) fn open(space: Space) -> Self {
        let (before, earlier) = counters(space)
            .map_or((0, 0), |of| (restart(&of.peak, &of.live), of.earlier_peak.swap(0, Relaxed)));
        Self { space, before, earlier }
    }

    pub(crate) fn space(&self) -> Space {
        self.space
    }

    /// Puts the peak back as if nothing had been allocated since.
    pub(crate) fn discard(self) {
        if let Some(of) = counters(self.space) {
            restart(&of.peak, &of.live);
            of.earlier_peak.store(0, Relaxed);
        }
        // The rest is what every end of it does.
    }

    /// The peak since then, whoever has reset it meanwhile.
    pub(crate) fn close(self) -> u64 {
        counters(self.space)
            .map_or(0, |of| of.peak.load(Relaxed).max(of.earlier_peak.load(Relaxed)))
    }
}

/// Whatever ends it, the peak of before is not lost.
impl Drop for PeakWindow {
    fn drop(&mut self) {
        if let Some(of) = counters(self.space) {
            raise(&of.peak, self.before);
            raise(&of.earlier_peak, self.earlier);
        }
    }
}
