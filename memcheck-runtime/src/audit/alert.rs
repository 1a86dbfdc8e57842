//! The alerts of an audit: a `tracing` event and the value that the callback gets.

use memcheck_core::quiet;
use memcheck_core::size::{Size, both};

use crate::usage::Usage;

/// A figure above a limit of an [`Audit`](crate::Audit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alert {
    /// Number of calls of [`crate::Audit::step`] so far.
    pub step: u64,
    /// The memory of the device at that step.
    pub usage: Usage,
    /// The figure and the limit that it exceeds.
    pub reason: AlertReason,
}

/// The reason for an [`Alert`]. Figures are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AlertReason {
    /// Live bytes are above [`crate::Audit::alert_above`].
    Allocated {
        /// The limit.
        limit: u64,
    },
    /// The peak is above [`crate::Audit::alert_peak_above`].
    Peak {
        /// The limit.
        limit: u64,
    },
    /// Live bytes rose by more than [`crate::Audit::alert_growth`] a step.
    Growth {
        /// The rise since the last reading, divided by the number of steps and rounded up.
        bytes_per_step: u64,
        /// The limit.
        limit: u64,
    },
}

impl Alert {
    pub(super) fn warn(&self) {
        let _quiet = quiet::enter();
        let Self { step, usage, reason } = self;
        let (AlertReason::Allocated { limit }
        | AlertReason::Peak { limit }
        | AlertReason::Growth { limit, .. }) = reason;
        tracing::warn!(
            target: "memcheck",
            step,
            allocated = usage.allocated,
            peak_allocated = usage.peak_allocated,
            limit,
            "{self}",
        );
    }
}

impl std::fmt::Display for Alert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { step, usage, reason } = self;
        write!(f, "step {step}: ")?;
        let (figure, state, limit) = match reason {
            AlertReason::Allocated { limit } => (usage.allocated, "are live", limit),
            AlertReason::Peak { limit } => (usage.peak_allocated, "were live at the peak", limit),
            AlertReason::Growth { bytes_per_step, limit } => {
                (*bytes_per_step, "more are live with every step", limit)
            }
        };
        write!(f, "{} {state}, above {}", both(figure), Size(*limit))
    }
}
