//! What came of a task: the verdict, and what it rests on.

use std::path::Path;
use std::time::Duration;

use memcheck_core::protocol::{Report, Status, Verdict};
use serde::{Deserialize, Serialize};

use super::Across;
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
    /// What was found across tests.
    #[serde(default)]
    pub(crate) across: Across,
}

impl Outcome {
    /// A test that is not run because `#[ignore]` stands on it.
    pub(crate) fn ignored() -> Self {
        let verdict = Verdict { status: Status::Ignored, findings: Vec::new(), denied: Vec::new() };
        Self {
            verdict,
            report: None,
            output: Output::default(),
            duration: Duration::ZERO,
            across: Across::default(),
        }
    }

    /// The pending snapshot that the test left.
    pub(crate) fn pending(&self) -> Option<&Path> {
        self.report.as_ref().and_then(|report| report.pending.as_deref())
    }
}
