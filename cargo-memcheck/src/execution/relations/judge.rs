//! Judges limits and laws across tests, once the figures of all tests of a leg are known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memcheck_core::input;
use memcheck_core::judgement::baseline::{Baseline, Laws};
use memcheck_core::judgement::finding::{Class, Code, Finding};
use memcheck_core::judgement::snapshot::{NewSnapshot, put_pending, remove_pending};
use memcheck_core::judgement::verdict::{Status, conclude, is_worth_keeping, unwritten};
use memcheck_core::measurement::record::{self, Record};
use memcheck_core::runs::relations::{
    self, Compared, DeviceRoom, MeasuredRuns, Needs, Other, scaling_reports, standing_in,
};
use memcheck_core::shape::ScalingReport;
use memcheck_core::space::Space;

use super::snapshot;
use crate::discovery::task::{Relations, Task, TestOutcome};
use crate::invocation::options::Levels;

/// By executable and path. `None` if a test left no figures.
#[derive(Debug, Default)]
pub(crate) struct MeasuredFigures(BTreeMap<(String, String), Option<MeasuredRuns>>);

impl MeasuredFigures {
    pub(crate) fn add(&mut self, task: &Task, outcome: &TestOutcome) {
        if outcome.verdict.status != Status::Ignored {
            let runs = measured(outcome).map(MeasuredRuns::of);
            self.0.insert((task.binary.id.clone(), task.name().to_owned()), runs);
        }
    }

    pub(crate) fn of(&self, task: &Task, test: &str) -> Option<&Option<MeasuredRuns>> {
        self.0.get(&(task.binary.id.clone(), test.to_owned()))
    }
}

/// Broken limits do not matter here.
fn measured(outcome: &TestOutcome) -> Option<&Record> {
    let record = &outcome.report.as_ref()?.record;
    let whole = record.outcome == record::Outcome::Returned || record.should_panic.is_some();
    let found = |code| outcome.verdict.has(code);
    let broke = found(Code::NotMeasured) || found(Code::Crashed) || found(Code::TestFailed);
    (whole && !broke).then_some(record)
}

pub(crate) struct Judge<'a> {
    /// The folder of the baselines.
    pub(crate) baselines: &'a Path,
    /// Mirrors that of the baselines. `None` if pending ones are written next to them.
    pub(crate) pending: Option<&'a Path>,
    pub(crate) levels: &'a Levels,
    /// The folder of the baselines if the paths are those of stored results, which may name no other
    /// files.
    pub(crate) within: Option<&'a Path>,
}

impl Judge<'_> {
    pub(crate) fn judge(
        &self,
        task: &Task,
        outcome: &mut TestOutcome,
        needs: &Needs,
        measured_figures: &MeasuredFigures,
    ) {
        let Some(record) = measured(outcome) else { return };
        let runs_of = |other: &Other| self.runs_of(other, task, record, measured_figures);
        let Compared { mut findings, members: known } = relations::compare(record, needs, runs_of);
        let runs = relations::members_of_runs(&known);
        let laws_of_runs: Vec<Vec<ScalingReport>> = runs
            .iter()
            .map(|run| scaling_reports(run, task.subject.scaling(), |space| room(record, space)))
            .collect();
        // The first run of each case is that of its figures.
        let laws = laws_of_runs.first().cloned().unwrap_or_default();
        let members = runs.first().map_or(&[][..], Vec::as_slice);
        let mut across = Relations { laws, snapshot: needs.law.clone(), ..Relations::default() };
        let kept =
            needs.law.as_ref().and_then(|law| snapshot::parse_file(self.read(law), &record.facts));
        let accepted = kept.as_ref().and_then(|kept| kept.as_ref().ok());
        findings.extend(relations::scaling(&laws_of_runs, accepted, record));
        let too_much = !is_worth_keeping(&outcome.verdict.findings)
            || findings.iter().any(|finding| match finding.code {
                Code::PeakLimit | Code::Unstable => true,
                // A law that only differs from the accepted one can still become the baseline.
                Code::Scaling => {
                    across.laws.iter().any(|report| !report.law.within(&report.allowed))
                }
                _ => false,
            });
        let tolerance = record.limits.tolerance.value;
        let is_unchanged = |then| relations::unchanged(then, &across.laws, members, tolerance);
        let is_new = !across.laws.is_empty() && !accepted.is_some_and(is_unchanged);
        // Without the figures of other cases no law is searched, and an earlier pending law must
        // remain.
        let judged = !across.laws.is_empty();
        let law = needs.law.as_ref().filter(|_| judged && record.limits.baseline.value);
        if let Some(law) = law {
            let text = (is_new && !too_much).then(|| {
                NewSnapshot {
                    source: task.subject.file(),
                    line: None,
                    facts: &record.facts,
                    body: &Laws::of(&across.laws).to_yaml(),
                }
                .text()
            });
            match self.keep(law, text.as_deref()) {
                Ok(pending) => (across.pending, across.text) = (pending, text),
                Err(error) => findings.push(unwritten("snapshot of its law", error)),
            }
            if is_new && !too_much && accepted.is_none() {
                let finding = no_law_yet(kept.as_ref().and_then(|kept| kept.as_ref().err()));
                // The test's own verdict may already report the missing baseline, so it is not
                // repeated.
                findings.extend(Some(finding).filter(|new| !outcome.verdict.has(new.code)));
            }
        }
        outcome.across = across;
        if too_much {
            discard_pending(outcome);
        }
        self.conclude(outcome, findings);
    }

    fn read(&self, snapshot: &Path) -> std::io::Result<String> {
        match self.within {
            Some(root) => input::read_text_inside(snapshot, root, input::SNAPSHOT),
            None => input::read_text(snapshot, input::SNAPSHOT),
        }
    }

    /// Of this run, else of its baseline.
    fn runs_of(
        &self,
        other: &Other,
        task: &Task,
        record: &Record,
        measured_figures: &MeasuredFigures,
    ) -> Result<MeasuredRuns, String> {
        match measured_figures.of(task, &other.test) {
            Some(Some(runs)) => Ok(runs.clone()),
            Some(None) => Err("was not measured in this run".to_owned()),
            None => {
                let baseline = Baseline::from_file(self.read(&other.snapshot));
                standing_in(&baseline, &record.facts).cloned().map(MeasuredRuns::from)
            }
        }
    }

    /// `None` removes the pending snapshot.
    pub(crate) fn keep(&self, law: &Path, text: Option<&str>) -> std::io::Result<Option<PathBuf>> {
        put_pending(law, self.pending.map(|folder| (folder, self.baselines)), text)
    }

    /// The bookkeeping findings come last.
    fn conclude(&self, outcome: &mut TestOutcome, more: Vec<Finding>) {
        let findings = std::mem::take(&mut outcome.verdict.findings).into_iter().chain(more);
        let (mut all, rest): (Vec<_>, Vec<_>) =
            findings.partition(|finding| finding.code.row().class != Class::Bookkeeping);
        all.extend(rest);
        outcome.verdict = conclude(all, |code| self.levels.of(code));
        if let Some(report) = &mut outcome.report {
            report.verdict = outcome.verdict.clone();
        }
    }
}

/// The figures of a test that broke a limit must not become the baseline.
fn discard_pending(outcome: &mut TestOutcome) {
    if let Some(pending) = outcome.report.as_mut().and_then(|report| report.pending.take()) {
        let _ = remove_pending(&pending);
    }
}

/// `unusable` is the reason why the baseline cannot be used, if there is one.
fn no_law_yet(unusable: Option<&String>) -> Finding {
    let (code, message) = match unusable {
        None => (Code::MissingBaseline, "the law of its cases has no baseline yet".to_owned()),
        Some(why) => {
            (Code::UncomparableBaseline, format!("the baseline of the law of its cases {why}"))
        }
    };
    Finding::new(code, message).hint("check the law, then `cargo memcheck accept`")
}

/// `fits` if the device has as much, else the capacity of the device. The host has no capacity.
fn room(record: &Record, space: Space) -> Option<DeviceRoom> {
    let fits = record.limits.fits.value.filter(|_| space.is_device());
    let capacity = record.capacities.get(&space).copied();
    match (fits, capacity) {
        (Some(fits), capacity) if capacity.is_none_or(|bytes| fits.bytes() <= bytes) => {
            Some(DeviceRoom { name: fits.to_string(), bytes: fits.bytes() })
        }
        (_, Some(bytes)) => Some(DeviceRoom { name: record.device.clone(), bytes }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invocation::options::Mode;

    #[test]
    fn stored_results_name_no_baseline_outside_of_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("ws");
        std::fs::create_dir(&root).unwrap();
        let (own, other) = (root.join("a.snap"), folder.path().join("b.snap"));
        std::fs::write(&own, "figures").unwrap();
        std::fs::write(&other, "figures").unwrap();
        let levels = Levels::new(BTreeMap::new(), Mode::Local);
        // A package of a workspace can be outside of the folder of the workspace, and a run reads
        // its baselines.
        for (within, reads) in [(None, true), (Some(root.as_path()), false)] {
            let judge = Judge { baselines: &root, pending: None, levels: &levels, within };
            assert_eq!(judge.read(&own).unwrap(), "figures");
            assert_eq!(judge.read(&other).is_ok(), reads);
            let error = judge.read("/dev/zero".as_ref()).unwrap_err();
            assert!(!reads || input::is_refusal(&error), "{error}");
        }
    }
}
