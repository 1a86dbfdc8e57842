//! The outcome of a task: the verdict, and the data that the verdict depends on.

use std::path::Path;
use std::time::Duration;

use memcheck_core::judgement::verdict::{Status, Verdict};
use memcheck_core::runs::process_end::Judged;
use memcheck_core::wire::protocol::Report;
use serde::{Deserialize, Serialize};

use super::Relations;
use crate::system::gpus::{RanOn, Slot};
use crate::system::process::Output;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TestOutcome {
    /// Of the test process, or of the command if the record is incomplete.
    pub(crate) verdict: Verdict,
    /// Only if it can be trusted.
    pub(crate) report: Option<Report>,
    pub(crate) output: Output,
    /// Wall time.
    pub(crate) duration: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gpu: Option<RanOn>,
    #[serde(default)]
    pub(crate) across: Relations,
}

impl TestOutcome {
    pub(crate) fn new(judged: Judged, output: Output, duration: Duration) -> Self {
        let Judged { verdict, report, obsolete: _ } = judged;
        Self { verdict, report, output, duration, gpu: None, across: Relations::default() }
    }

    /// Further runs may change the verdict and its report.
    pub(crate) fn take_judged(&mut self) -> Judged {
        Judged { verdict: self.verdict.clone(), report: self.report.take(), obsolete: None }
    }

    pub(crate) fn ignored() -> Self {
        let verdict = Verdict { status: Status::Ignored, findings: Vec::new(), denied: Vec::new() };
        let judged = Judged { verdict, report: None, obsolete: None };
        Self::new(judged, Output::default(), Duration::ZERO)
    }

    pub(crate) fn on(self, slot: Option<&Slot<'_>>) -> Self {
        let record = self.report.as_ref().map(|report| &report.record);
        Self { gpu: RanOn::of(slot, record), ..self }
    }

    pub(crate) fn pending(&self) -> Option<&Path> {
        self.report.as_ref().and_then(|report| report.pending.as_deref())
    }
}
