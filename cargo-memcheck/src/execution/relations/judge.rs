//! Gives a test the figures of the other tests that it needs: those of this run, else of their
//! baselines.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use memcheck_core::input;
use memcheck_core::judgement::baseline::{Baseline, Laws};
use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::record::Record;
use memcheck_core::runs::relations::{
    MeasuredRuns, Needs, Other, OtherTests, accepted_laws, has_figures, standing_in,
};

use crate::discovery::task::{Task, TestOutcome};

/// By executable and path. `None` if a test left no figures.
#[derive(Debug, Default)]
pub(crate) struct MeasuredFigures(BTreeMap<(String, String), Option<MeasuredRuns>>);

impl MeasuredFigures {
    pub(crate) fn add(&mut self, task: &Task, outcome: &TestOutcome) {
        // An ignored test has its baseline in its place.
        if outcome.verdict.status != Status::Ignored {
            let record = outcome.report.as_ref().map(|report| &report.record);
            let record =
                record.filter(|record| has_figures(record, |code| outcome.verdict.has(code)));
            let runs = record.map(MeasuredRuns::of);
            self.0.insert((task.binary.id.clone(), task.name().to_owned()), runs);
        }
    }

    pub(crate) fn of(&self, task: &Task, test: &str) -> Option<&Option<MeasuredRuns>> {
        self.0.get(&(task.binary.id.clone(), test.to_owned()))
    }

    /// Calls `then` with the other tests of `task`. `within` is the folder of the baselines if the
    /// paths are those of stored results, which may name no other files.
    pub(crate) fn others<T>(
        &self,
        task: &Task,
        (record, needs): (&Record, &Needs),
        within: Option<&Path>,
        then: impl FnOnce(&OtherTests<'_>) -> T,
    ) -> T {
        let runs_of = |other: &Other, record: &Record| match self.of(task, &other.test) {
            Some(Some(runs)) => Ok(runs.clone()),
            Some(None) => Err("was not measured in this run".to_owned()),
            None => {
                let baseline = Baseline::from_file(read(&other.snapshot, within));
                standing_in(&baseline, &record.facts).cloned().map(MeasuredRuns::from)
            }
        };
        let accepted: Option<Result<Laws, String>> =
            needs.law.as_ref().and_then(|law| accepted_laws(read(law, within), &record.facts));
        then(&OtherTests {
            needs,
            scaling: task.subject.scaling(),
            accepted,
            source: task.subject.file(),
            runs_of: &runs_of,
        })
    }
}

fn read(snapshot: &Path, within: Option<&Path>) -> io::Result<String> {
    match within {
        Some(root) => input::read_text_inside(snapshot, root, input::SNAPSHOT),
        None => input::read_text(snapshot, input::SNAPSHOT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_results_name_no_baseline_outside_of_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("ws");
        std::fs::create_dir(&root).unwrap();
        let (own, other) = (root.join("a.snap"), folder.path().join("b.snap"));
        std::fs::write(&own, "figures").unwrap();
        std::fs::write(&other, "figures").unwrap();
        // A package of a workspace can be outside of the folder of the workspace, and a run reads
        // its baselines.
        for (within, reads) in [(None, true), (Some(root.as_path()), false)] {
            assert_eq!(read(&own, within).unwrap(), "figures");
            assert_eq!(read(&other, within).is_ok(), reads);
            let error = read("/dev/zero".as_ref(), within).unwrap_err();
            assert!(!reads || input::is_refusal(&error), "{error}");
        }
    }
}
