//! The outcome of a task: the verdict, and the data that the verdict depends on.

use std::path::Path;
use std::time::Duration;

use memcheck_core::judgement::verdict::{Status, Verdict};
use memcheck_core::runs::process::Judged;
use memcheck_core::wire::protocol::Report;
use serde::{Deserialize, Serialize};

use super::Relations;
use crate::system::gpus::{RanOn, Slot};
use crate::system::process::Output;

/// The outcome of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TestOutcome {
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
    pub(crate) across: Relations,
}

impl TestOutcome {
    /// The outcome of one process.
    pub(crate) fn new(judged: Judged, output: Output, duration: Duration) -> Self {
        let Judged { verdict, report, obsolete: _ } = judged;
        Self { verdict, report, output, duration, gpu: None, across: Relations::default() }
    }

    /// Takes out the verdict and its report, which further runs may change.
    pub(crate) fn take_judged(&mut self) -> Judged {
        Judged { verdict: self.verdict.clone(), report: self.report.take(), obsolete: None }
    }

    /// Returns the outcome of a test that does not run because of `#[ignore]`.
    pub(crate) fn ignored() -> Self {
        let verdict = Verdict { status: Status::Ignored, findings: Vec::new(), denied: Vec::new() };
        let judged = Judged { verdict, report: None, obsolete: None };
        Self::new(judged, Output::default(), Duration::ZERO)
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
