//! Runs a test until no run is left that could change its verdict, and keeps what may become its
//! baseline.

use std::path::{Path, PathBuf};

use memcheck_core::judgement::baseline::Baseline;
use memcheck_core::judgement::finding::{Code, Level};
use memcheck_core::judgement::verdict::unwritten;
use memcheck_core::measurement::record::Record;
use memcheck_core::runs::measured::{Concluded, Gate, MeasuredTest, Run};
use memcheck_core::runs::plan::{RunPlan, Stage};
use memcheck_core::runs::process_end::Ended;
use memcheck_core::runs::relations::{Across, OtherTests, PendingLaw, across};
use memcheck_core::runs::report::{Judged, Report};
use memcheck_core::wire::protocol::{Measurement, VERSION};

use crate::snapshots::{self, Snapshots};

/// The place of a test in the sources, and of its baseline.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The source file, relative to the workspace.
    pub source: &'a Path,
    /// The line of the test.
    pub line: Option<u32>,
    /// The baseline, accepted or not.
    pub snapshot: &'a Path,
}

/// What the runs of all tests have in common.
pub struct Conductor<'a> {
    /// Where pending snapshots are written.
    pub snapshots: Snapshots<'a>,
    /// The configured level of a code.
    pub level: &'a dyn Fn(Code) -> Level,
}

impl std::fmt::Debug for Conductor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conductor").field("snapshots", &self.snapshots).finish_non_exhaustive()
    }
}

/// The run of a process that has ended. `None` if it was not started.
pub fn run_of(
    (stage, plan): (Stage, RunPlan),
    ended: Option<Ended>,
    name: impl FnOnce(Measurement) -> Record,
) -> Run {
    let (measurement, finding) = match ended {
        Some(Ended { measurement, finding, stack: _, iterates: _ }) => (measurement, finding),
        None => (None, None),
    };
    Run { stage, plan, record: measurement.map(|it| name(*it)), finding }
}

impl Conductor<'_> {
    /// Runs the test, and again as long as a further run is needed. `run` starts a process and waits
    /// for its end.
    pub fn run(
        &self,
        test: &mut MeasuredTest,
        baseline: &Baseline,
        mut run: impl FnMut(Stage, RunPlan) -> Run,
    ) {
        let gate = Gate { baseline, level: self.level };
        while let Some((stage, plan)) = test.next(&gate) {
            let ended = run(stage, plan);
            test.runs.push(ended);
        }
    }

    /// Compares a test that needs no further run with the tests whose figures it needs. If that has
    /// findings, it runs once more, so that they have call sites.
    pub fn relate(
        &self,
        test: &mut MeasuredTest,
        baseline: &Baseline,
        others: &OtherTests<'_>,
        run: impl FnMut(Stage, RunPlan) -> Run,
    ) {
        let related = |test: &MeasuredTest| {
            let own = self.judge(test, baseline);
            own.record.map(|record| across(&record, &own.verdict.findings, others))
        };
        test.across = related(test);
        let before = test.runs.len();
        self.run(test, baseline, run);
        if test.runs.len() > before {
            // Otherwise the findings of the former comparison would be judged as the test's own.
            test.across = None;
            test.across = related(test);
        }
    }

    /// The verdict on a test, which changes no file.
    pub fn judge(&self, test: &MeasuredTest, baseline: &Baseline) -> Concluded {
        test.judge(&Gate { baseline, level: self.level })
    }

    /// The verdict on a test, without a change of its pending snapshot. `snapshot` is the path of
    /// its baseline.
    pub fn report(
        &self,
        test: &MeasuredTest,
        baseline: &Baseline,
        snapshot: Option<&Path>,
    ) -> Judged {
        reported(self.judge(test, baseline), snapshot)
    }

    /// The verdict on a test that needs no further run, and its pending snapshot.
    ///
    /// The pending snapshot of a test without figures or without a baseline stays as it is. That of
    /// a test that failed is removed, because it belongs to older code.
    pub fn conclude(
        &self,
        test: &MeasuredTest,
        baseline: &Baseline,
        place: Option<Place<'_>>,
    ) -> Judged {
        let concluded = self.judge(test, baseline);
        let is_pending = concluded.is_pending;
        let mut judged = reported(concluded, place.map(|place| place.snapshot));
        let (Some(Place { source, line, snapshot }), Some(report)) = (place, &mut judged.report)
        else {
            return judged;
        };
        if report.snapshot.is_none() {
            return judged;
        }
        let text = is_pending.then(|| snapshots::text(&report.record, source, line));
        match self.snapshots.put(snapshot, text.as_deref()) {
            Ok(written) => report.pending = written,
            Err(error) => judged.add([unwritten("snapshot", error)], self.level),
        }
        judged
    }

    /// Writes or removes the pending snapshot of the laws of a test.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn keep_law(&self, law: &Path, across: &Across) -> std::io::Result<Option<PathBuf>> {
        match &across.law {
            Some(PendingLaw::Written(text)) => self.snapshots.put(law, Some(text)),
            Some(PendingLaw::Removed) => self.snapshots.put(law, None),
            None => Ok(None),
        }
    }
}

fn reported(concluded: Concluded, snapshot: Option<&Path>) -> Judged {
    let Concluded { record, verdict, .. } = concluded;
    let report = record.map(|record| Report {
        version: VERSION,
        snapshot: snapshot.filter(|_| record.limits.baseline.value).map(Path::to_owned),
        record,
        verdict: verdict.clone(),
        pending: None,
    });
    Judged { verdict, report }
}
