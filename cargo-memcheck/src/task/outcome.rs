//! What came of a task: the verdict, and what it rests on.

use std::path::Path;
use std::time::Duration;

use memcheck_core::process::Judged;
use memcheck_core::protocol::{Report, Status, Verdict};
use serde::{Deserialize, Serialize};

use super::Across;
use crate::gpus::{RanOn, Slot};
use crate::process::Output;

/// What came of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The verdict: the test process's own, unless its record is incomplete.
    pub(crate) verdict: Verdict,
    /// What the test process reported, where that can be believed.
    pub(crate) report: Option<Report>,
    /// What it printed.
    pub(crate) output: Output,
    /// How long it took.
    pub(crate) duration: Duration,
    /// The real GPU that it was on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gpu: Option<RanOn>,
    /// What was found across tests.
    #[serde(default)]
    pub(crate) across: Across,
}

impl Outcome {
    /// The outcome of one process.
    pub(crate) fn new(judged: Judged, output: Output, duration: Duration) -> Self {
        let Judged { verdict, report, obsolete: _ } = judged;
        Self { verdict, report, output, duration, gpu: None, across: Across::default() }
    }

    /// Takes out the verdict and its report, which further runs may change.
    pub(crate) fn take_judged(&mut self) -> Judged {
        Judged { verdict: self.verdict.clone(), report: self.report.take(), obsolete: None }
    }

    /// A test that is not run because `#[ignore]` stands on it.
    pub(crate) fn ignored() -> Self {
        let verdict = Verdict { status: Status::Ignored, findings: Vec::new(), denied: Vec::new() };
        let judged = Judged { verdict, report: None, obsolete: None };
        Self::new(judged, Output::default(), Duration::ZERO)
    }

    /// The same, with the GPU that it was given, or found.
    pub(crate) fn on(self, slot: Option<&Slot<'_>>) -> Self {
        let record = self.report.as_ref().map(|report| &report.record);
        Self { gpu: RanOn::of(slot, record), ..self }
    }

    /// The pending snapshot that the test left.
    pub(crate) fn pending(&self) -> Option<&Path> {
        self.report.as_ref().and_then(|report| report.pending.as_deref())
    }
}
