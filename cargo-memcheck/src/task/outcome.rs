//! The outcome of a task: the verdict, and the data that the verdict depends on.

use std::path::Path;
use std::time::Duration;

use memcheck_core::protocol::{Report, Status, Verdict};
use serde::{Deserialize, Serialize};

use super::Across;
use crate::gpus::{RanOn, Slot};
use crate::process::Output;

/// The outcome of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The verdict of the test process, or that of the command if the record is incomplete.
    pub(crate) verdict: Verdict,
    /// The report of the test process, if it can be trusted.
    pub(crate) report: Option<Report>,
    pub(crate) output: Output,
    /// The wall time of the test process.
    pub(crate) duration: Duration,
    /// The real GPU that the test ran on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gpu: Option<RanOn>,
    /// The findings across tests.
    #[serde(default)]
    pub(crate) across: Across,
}

impl Outcome {
    /// Returns the outcome of a test that does not run because of `#[ignore]`.
    pub(crate) fn ignored() -> Self {
        let verdict = Verdict { status: Status::Ignored, findings: Vec::new(), denied: Vec::new() };
        Self {
            verdict,
            report: None,
            output: Output::default(),
            duration: Duration::ZERO,
            gpu: None,
            across: Across::default(),
        }
    }

    /// Adds the GPU that the test was assigned to, or that it reported.
    pub(crate) fn on(self, slot: Option<&Slot<'_>>) -> Self {
        let record = self.report.as_ref().map(|report| &report.record);
        Self { gpu: RanOn::of(slot, record), ..self }
    }

    /// Returns the path of the pending snapshot that the test wrote.
    pub(crate) fn pending(&self) -> Option<&Path> {
        self.report.as_ref().and_then(|report| report.pending.as_deref())
    }
}
