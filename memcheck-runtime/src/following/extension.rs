//! The iterations beyond the measured ones: their time, and the peaks that they must not change.

use std::collections::BTreeMap;

use memcheck_core::space::Space;
use memcheck_ledger::{self as ledger, PeakWindow, block};

use crate::clock::Clock;

/// The state of iterations beyond the measured ones.
#[derive(Debug)]
pub(super) struct Extension {
    pub(super) clock: Clock,
    /// For each space, a window over its peak and the live bytes before these iterations.
    windows: Vec<(PeakWindow, u64)>,
    /// The peak of each space before these iterations.
    pub(super) peaks: BTreeMap<Space, u64>,
    /// The peak of all spaces together before these iterations.
    sum_peak: u64,
    /// The reason why they have ended; `None` while they run.
    pub(super) stop_reason: Option<StopReason>,
    pub(super) seconds: Option<f64>,
    /// True if they changed the live bytes of a space.
    pub(super) disturbed: bool,
    /// The error that the body returned; empty if it returned none.
    pub(super) error: String,
}

/// The reason why the iterations beyond the measured ones have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// No more iterations were needed or allowed.
    Done,
    /// The next iterations would have taken more time than was allowed.
    OutOfTime,
    /// The next iterations would have left more memory than was allowed.
    OutOfMemory,
    /// The body returned an error.
    Failed,
    /// A soak has had the most iterations that the ledger can count.
    TooMany,
}

impl StopReason {
    /// The reason as a part of a sentence, if the iterations ended before they had to.
    fn text(self) -> Option<&'static str> {
        match self {
            Self::Done => None,
            Self::OutOfTime => Some("there was no time for further iterations"),
            Self::OutOfMemory => Some("there was no memory for further iterations"),
            Self::Failed => Some("the body returned an error"),
            Self::TooMany => Some("the ledger cannot count more iterations"),
        }
    }
}

impl Extension {
    pub(super) fn begin(clock: Clock) -> Self {
        // All spaces, including those without allocations so far.
        let windows: Vec<(PeakWindow, u64)> = block::spaces()
            .map(|space| (PeakWindow::open(space), ledger::snapshot(space).live))
            .collect();
        Self {
            clock,
            peaks: windows.iter().map(|(window, _)| (window.space(), window.before())).collect(),
            windows,
            sum_peak: ledger::sum().peak,
            stop_reason: None,
            seconds: None,
            disturbed: false,
            error: String::new(),
        }
    }

    /// The reason why the iterations ended early; `None` if they did not.
    pub(super) fn reason(&self) -> Option<String> {
        match self.stop_reason {
            // A panic leaves the iterations without a reason.
            None => Some("the body panicked".to_owned()),
            Some(StopReason::Failed) if !self.error.is_empty() => {
                Some(format!("the body returned an error: {}", self.error))
            }
            Some(reason) => reason.text().map(str::to_owned),
        }
    }

    pub(super) fn end(&mut self, stop_reason: StopReason) {
        self.stop_reason = Some(stop_reason);
        self.seconds = Some(self.clock.real_elapsed().as_secs_f64());
        for (window, live) in self.windows.drain(..) {
            self.disturbed |= ledger::snapshot(window.space()).live != live;
            window.discard();
        }
        // The sum has no window, because it belongs to no space.
        ledger::restore_peak(self.sum_peak);
    }
}
