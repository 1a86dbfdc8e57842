//! The runs of a task so far, and the outcome that they give.

use std::path::PathBuf;
use std::time::Duration;

use memcheck_conduct::{Place, snapshots};
use memcheck_core::judgement::baseline::Baseline;
use memcheck_core::judgement::location::{self, Roots};
use memcheck_core::runs::measured::{Concluded, MeasuredTest, Run};
use memcheck_core::runs::plan::{Explain, Stage};
use memcheck_core::runs::relations::Needs;
use memcheck_core::runs::report::Judged;

use super::Runner;
use crate::discovery::task::{Task, TestOutcome};
use crate::system::gpus::{RanOn, Slot};
use crate::system::process::Output;

/// The runs of a task.
#[derive(Debug)]
pub(crate) struct TestRuns {
    pub(super) test: MeasuredTest,
    pub(super) baseline: Baseline,
    snapshot: Option<PathBuf>,
    /// Of the first run.
    output: Output,
    /// Of all runs.
    pub(super) duration: Duration,
    gpu: Option<RanOn>,
    /// Words for the findings, if these are the runs of a later series.
    pub(super) series: Option<String>,
}

impl TestRuns {
    pub(super) fn new(
        explain: Explain,
        stages: impl Into<Vec<Stage>>,
        task: &Task,
        roots: Roots<'_>,
    ) -> Self {
        let snapshot =
            task.subject.test().filter(|_| task.limits.baseline.value).map(|entry| {
                location::baseline(roots, &entry.file, &entry.snapshot, task.family())
            });
        Self {
            test: MeasuredTest::new(explain, stages),
            baseline: snapshot.as_deref().map_or(Baseline::Off, snapshots::load),
            snapshot,
            output: Output::default(),
            duration: Duration::ZERO,
            gpu: None,
            series: None,
        }
    }

    pub(super) fn first(&mut self, run: Run, (output, duration): (Output, Duration)) {
        self.test.runs.push(run);
        self.output = output;
        self.duration += duration;
    }

    pub(super) fn on(self, slot: Option<&Slot<'_>>) -> Self {
        let record = self.test.runs.first().and_then(|run| run.record.as_ref());
        Self { gpu: RanOn::of(slot, record), ..self }
    }

    fn outcome(&self, judged: Judged) -> TestOutcome {
        let mut outcome = TestOutcome::new(judged, self.output.clone(), self.duration);
        outcome.gpu.clone_from(&self.gpu);
        if let Some(series) = &self.series {
            for finding in &mut outcome.verdict.findings {
                finding.message = format!("{series}: {}", finding.message);
            }
        }
        outcome
    }
}

impl Runner<'_> {
    /// The verdict so far, which changes no file.
    pub(super) fn judged(&self, runs: &TestRuns) -> Concluded {
        self.with_conductor(|conductor| conductor.judge(&runs.test, &runs.baseline))
    }

    /// The outcome before the figures of other tests are known.
    pub(crate) fn unrelated(&self, runs: &TestRuns) -> TestOutcome {
        runs.outcome(self.with_conductor(|conductor| {
            conductor.report(&runs.test, &runs.baseline, runs.snapshot.as_deref())
        }))
    }

    /// The outcome of a test that needs no further run, with its pending snapshot.
    pub(crate) fn conclude(&self, task: &Task, runs: &TestRuns) -> TestOutcome {
        let file = task.subject.file();
        let source = file.strip_prefix(self.roots.workspace).unwrap_or(file);
        let place = runs.snapshot.as_deref();
        let place =
            place.map(|snapshot| Place { source, line: Some(task.subject.line()), snapshot });
        let conclude = || {
            self.with_conductor(|conductor| conductor.conclude(&runs.test, &runs.baseline, place))
        };
        runs.outcome(conclude())
    }

    /// The same, with what the figures of other tests say, and the pending snapshot of its laws.
    pub(crate) fn conclude_related(
        &self,
        task: &Task,
        runs: &TestRuns,
        needs: &Needs,
    ) -> TestOutcome {
        let mut outcome = self.conclude(task, runs);
        if let Some(across) = &runs.test.across {
            self.with_conductor(|conductor| outcome.keep_laws(across, needs, conductor));
        }
        outcome
    }
}
