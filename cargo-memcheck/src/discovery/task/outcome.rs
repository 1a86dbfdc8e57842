//! The outcome of a task: the verdict, and the data that the verdict depends on.

use std::path::Path;
use std::time::Duration;

use memcheck_conduct::Conductor;
use memcheck_core::judgement::finding::{Code, Finding, Level};
use memcheck_core::judgement::verdict::{Status, Verdict, unwritten};
use memcheck_core::runs::relations::{Across, Needs};
use memcheck_core::runs::report::{Judged, Report};
use memcheck_core::size::Size;
use memcheck_core::wire::protocol::Progress;
use serde::{Deserialize, Serialize};

use super::Relations;
use crate::system::gpus::RanOn;
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
    /// The run was killed while the test was running.
    #[serde(skip)]
    pub(crate) was_killed: bool,
    /// The run was a profile of the test.
    #[serde(skip)]
    pub(crate) is_profiled: bool,
}

impl TestOutcome {
    pub(crate) fn new(judged: Judged, output: Output, duration: Duration) -> Self {
        let Judged { verdict, report } = judged;
        Self {
            verdict,
            report,
            output,
            duration,
            gpu: None,
            across: Relations::default(),
            was_killed: false,
            is_profiled: false,
        }
    }

    pub(crate) fn ignored() -> Self {
        let verdict = Verdict { status: Status::Ignored, findings: Vec::new(), denied: Vec::new() };
        let judged = Judged { verdict, report: None };
        Self::new(judged, Output::default(), Duration::ZERO)
    }

    /// The outcome of a test that was running when its run was killed, with its last known progress.
    pub(crate) fn killed(progress: Option<&Progress>) -> Self {
        let at = progress.map(|Progress { iteration, of, live, .. }| {
            let of = if *of > 0 { format!(" of {of}") } else { String::new() };
            format!(" (iteration {iteration}{of}, {} live)", Size(*live))
        });
        let message = format!("killed while running{}", at.unwrap_or_default());
        let findings = vec![Finding::new(Code::NotMeasured, message)];
        let verdict = Verdict { status: Status::NotMeasured, findings, denied: Vec::new() };
        let judged = Judged { verdict, report: None };
        Self { was_killed: true, ..Self::new(judged, Output::default(), Duration::ZERO) }
    }

    /// Adds the laws of its cases, and keeps or removes their pending snapshot.
    pub(crate) fn keep_laws(&mut self, across: &Across, needs: &Needs, conductor: &Conductor<'_>) {
        self.across = Relations {
            laws: across.laws.clone(),
            snapshot: needs.law.clone(),
            text: across.text().map(str::to_owned),
            ..Relations::default()
        };
        let Some(law) = &needs.law else { return };
        match conductor.keep_law(law, across) {
            Ok(pending) => self.across.pending = pending,
            Err(error) => self.add([unwritten("snapshot of its law", error)], conductor.level),
        }
    }

    /// Adds findings that do not follow from the runs of this test alone.
    pub(crate) fn add(
        &mut self,
        findings: impl IntoIterator<Item = Finding>,
        level: impl Fn(Code) -> Level,
    ) {
        let (verdict, report) = (self.verdict.clone(), self.report.take());
        let mut judged = Judged { verdict, report };
        judged.add(findings, level);
        (self.verdict, self.report) = (judged.verdict, judged.report);
    }

    pub(crate) fn pending(&self) -> Option<&Path> {
        self.report.as_ref().and_then(|report| report.pending.as_deref())
    }
}
