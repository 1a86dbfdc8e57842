//! The further runs of a test after its first: one repeats a disturbed first run, one looks for late
//! leaks if the first run did not, one decides the growth, one explains figures by call stacks, up
//! to three compare figures that differed, one refuses allocations, and one soaks the test if the
//! user asks for it. The result of each is merged into the report of the first.

mod further;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::Family;
use crate::growth::survivors::Growth;
use crate::judgement::baseline::{Baseline, Figures};
use crate::judgement::blame;
use crate::judgement::finding::{Class, Code, Finding, Level};
use crate::judgement::verdict;
use crate::measurement::comparison;
use crate::measurement::fault_sweep::SweepResult;
use crate::measurement::record::{Outcome, Record, SpaceRecord};
use crate::measurement::repeats::{MOST_RUNS, Repeats};
use crate::measurement::soak::Soaked;
use crate::space::Space;
use crate::wire::protocol::{Follow, Reach, Report};
use memcheck_limits::names;

pub use further::{Further, concluded, further};

/// The tests that are run with attribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explain {
    /// No test: figures only.
    Never,
    /// A test that failed on memory or has new figures is run once more with attribution.
    #[default]
    Failed,
    /// Every test has attribution in its first run.
    Always,
}

names!(Explain { "never" => Never, "failed" => Failed, "always" => Always });

impl Explain {
    /// The first run of a test.
    pub fn first(self) -> RunPlan {
        match self {
            // The peak must be that of the measured iterations, so it does not go beyond them.
            // [`Stage::Extend`] does.
            Self::Always => RunPlan { follow: Follow::Yes, ..RunPlan::default() },
            Self::Never | Self::Failed => RunPlan { reach: Reach::Horizon, ..RunPlan::default() },
        }
    }
}

/// The settings of one run of a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunPlan {
    /// The detail in which the run follows blocks.
    pub follow: Follow,
    /// The number of iterations beyond the measured ones.
    pub reach: Reach,
    /// The figures that the run should reproduce.
    pub expected: Option<Figures>,
}

/// A further run of a test. A caller must go through [`Stage::ALL`] in order, and then through
/// [`Stage::Soak`] if the user asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Measures without further iterations, because those of the first run disturbed it.
    Repeat,
    /// Looks for late and rare leaks, because the first run had call stacks and did not.
    Extend,
    /// Iterates until the growth is decided.
    Decide,
    /// Follows every block, so that findings and new figures have call sites. If resident memory
    /// is judged, the run that decided the growth had none, and this one has as many iterations.
    Explain,
    /// Measures once more, because two runs measured different figures.
    Compare,
    /// Refuses the device allocations of one iteration in turn.
    Sweep,
    /// Iterates for this time, for leaks that begin late or are rare.
    Soak(Duration),
}

impl Stage {
    /// In order. Two runs differ before the three comparisons, which makes [`MOST_RUNS`].
    pub const ALL: [Self; 8] = [
        Self::Repeat,
        Self::Extend,
        Self::Decide,
        Self::Explain,
        Self::Compare,
        Self::Compare,
        Self::Compare,
        Self::Sweep,
    ];

    /// The stages that measure the figures of a test, without call sites.
    pub const FIGURES: [Self; 2] = [Self::Repeat, Self::Decide];

    /// The run of this stage; `None` if the report does not need it.
    pub fn run(self, explain: Explain, report: &Report) -> Option<RunPlan> {
        let record = &report.record;
        let follow = if explain == Explain::Never { Follow::No } else { Follow::Yes };
        let expected = || Some(Figures::of(record));
        match self {
            Self::Repeat => record
                .followed
                .as_ref()
                .is_some_and(|followed| followed.disturbed || record.outcome != Outcome::Returned)
                .then(|| RunPlan { reach: Reach::Screen, ..explain.first() }),
            Self::Extend => {
                let returned = record.outcome == Outcome::Returned;
                (explain == Explain::Always && returned && record.can_go_on)
                    .then(|| RunPlan { reach: Reach::Horizon, ..explain.first() })
            }
            Self::Decide => {
                (record.outcome == Outcome::Returned && record.is_undecided()).then(|| RunPlan {
                    // Call stacks take resident memory too. With `always` no run is without them.
                    follow: match record.limits.max_rss_growth.value {
                        Some(_) if explain != Explain::Always => Follow::No,
                        _ => follow,
                    },
                    reach: Reach::Decision,
                    expected: expected(),
                })
            }
            Self::Explain => (explain == Explain::Failed && needs_call_sites(report)).then(|| {
                let is_known = record.longer.is_some() || record.followed.is_none();
                let judges_resident = record.limits.max_rss_growth.value.is_some();
                let reach =
                    if judges_resident && !is_known { Reach::Decision } else { Reach::Screen };
                RunPlan { follow, reach, expected: expected() }
            }),
            Self::Compare => record
                .repeats
                .as_ref()
                .is_some_and(|repeats| repeats.asked.is_none() && repeats.runs.len() < MOST_RUNS)
                .then(|| RunPlan { follow, reach: Reach::Screen, expected: expected() }),
            Self::Sweep => needs_sweep(record).then_some(RunPlan {
                follow,
                reach: Reach::Faults,
                expected: None,
            }),
            Self::Soak(time) => {
                let grows = report.verdict.has(Code::Leak);
                let soaks = record.refuses_soak().is_none() && !grows;
                soaks.then_some(RunPlan { follow, reach: Reach::Soak(time), expected: None })
            }
        }
    }

    /// Merges the report of this stage's run into that of the first run.
    pub fn merge(
        self,
        first: Report,
        second: Option<Report>,
        baseline: &Baseline,
        level: impl Fn(Code) -> Level,
    ) -> Report {
        let others = |report: &Report| other_findings(report, baseline, &level);
        let rejudged = |merged: Report, findings| rejudged(merged, findings, baseline, &level);
        match (self, second) {
            (Self::Repeat, Some(second)) => {
                let findings = others(&second);
                rejudged(repeated(first, second), findings)
            }
            (Self::Extend, Some(second)) if second.record.followed.is_some() => {
                let grows = may_grow(&second.record);
                let findings = if grows { others(&first) } else { Vec::new() };
                let merged = extended(first, second);
                if grows { rejudged(merged, findings) } else { merged }
            }
            (Self::Extend, _) | (Self::Repeat | Self::Compare, None) => first,
            (Self::Decide, second) => {
                let findings = others(second.as_ref().unwrap_or(&first));
                rejudged(decided(first, second), findings)
            }
            (Self::Explain | Self::Compare, Some(second)) if reproduces(&first, &second) => {
                let findings = others(&second);
                rejudged(explained(first, second), findings)
            }
            (Self::Explain | Self::Compare, Some(second)) if is_comparable(&first, &second) => {
                let findings = others(&first);
                rejudged(with_run(first, &second), findings)
            }
            (Self::Sweep, second) => {
                let findings = others(&first);
                rejudged(swept(first, second), findings)
            }
            (Self::Soak(time), second) => {
                let findings = others(&first);
                rejudged(soaked(first, second, time), findings)
            }
            (Self::Explain, second) => unexplained(first, second.is_some()),
            (Self::Compare, Some(_)) => first,
        }
    }
}

/// `others` are findings that do not follow from the record alone.
pub(crate) fn rejudged(
    report: Report,
    others: Vec<Finding>,
    baseline: &Baseline,
    level: &impl Fn(Code) -> Level,
) -> Report {
    let record = &report.record;
    let mut findings = verdict::judge(record, baseline, &record.limits, level).findings;
    findings.extend(others);
    Report { verdict: verdict::conclude(findings, level), ..report }
}

/// Such as a snapshot that could not be written, or limits across tests.
pub(crate) fn other_findings(
    report: &Report,
    baseline: &Baseline,
    level: &impl Fn(Code) -> Level,
) -> Vec<Finding> {
    let record = &report.record;
    let judged = verdict::judge(record, baseline, &record.limits, level).findings;
    let findings = report.verdict.findings.iter();
    findings.filter(|finding| !judged.contains(finding)).cloned().collect()
}

/// For findings about memory, new figures, and memory that is allocated once in the process.
fn needs_call_sites(report: &Report) -> bool {
    let about_memory = |code: Code| code.row().class == Class::Measured && code.is_about_memory();
    let findings = &report.verdict.findings;
    let failed = findings.iter().any(|finding| about_memory(finding.code));
    let unexplained = failed || report.pending.is_some() || report.record.holds_once();
    report.record.attribution.is_none() && unexplained
}

/// A sweep refuses device memory, and needs iterations that end.
fn needs_sweep(record: &Record) -> bool {
    record.limits.fault_sweep.value.is_on()
        && record.fault_sweep.is_none()
        && record.family == Family::Cuda
        && record.outcome == Outcome::Returned
        && record.iterated
}

/// The figures of the first report, with the refusals of the second.
fn swept(mut first: Report, second: Option<Report>) -> Report {
    let sweep = second.and_then(|second| second.record.fault_sweep);
    first.record.fault_sweep = Some(sweep.unwrap_or_else(|| SweepResult {
        ended: Some("its process wrote no record".to_owned()),
        ..SweepResult::default()
    }));
    first
}

/// The figures of the first report, with the growth that only the soak has shown.
fn soaked(mut first: Report, second: Option<Report>, time: Duration) -> Report {
    let Some(Report { record: second, .. }) = second else {
        first.record.soaked = Some(Soaked::refused(time, "its process wrote no record"));
        return first;
    };
    first.record.soaked.clone_from(&second.soaked);
    if second.iterations >= first.record.iterations && shows_other_growth(&first.record, &second) {
        first.record.take_growth(second);
    }
    first
}

/// The growth of a test that grows within its limit stays that of its shorter runs, because the
/// baseline has that figure, and a mean over more iterations is another number.
fn shows_other_growth(first: &Record, soak: &Record) -> bool {
    first.judged.iter().any(|space| {
        let (Some(before), Some(after)) = (first.spaces.get(space), soak.spaces.get(space)) else {
            return false;
        };
        let growth = after.metrics.growth;
        match after.growth {
            Growth::Found { .. } => {
                growth > first.limits.max_growth.value || growth > 0 && before.metrics.growth == 0
            }
            Growth::Undecided { .. } => before.metrics.growth == 0,
            Growth::Quiet { .. } | Growth::Unknown => false,
        }
    })
}

/// The second run must be measured, and its body must get as far as that of the first.
fn is_comparable(first: &Report, second: &Report) -> bool {
    !second.verdict.findings.iter().any(|finding| finding.code.cut_it_short())
        && first.record.outcome == second.record.outcome
        && second.record.iterations >= first.record.iterations
}

/// The growth is that of the first run, because it had more iterations, even if it ended in them.
fn repeated(first: Report, mut second: Report) -> Report {
    let disturbed = comparison::of_measured_iterations(&first.record);
    if is_comparable(&first, &second)
        && comparison::differ(&disturbed, &comparison::compared(&second.record))
    {
        comparison::add(&mut second.record, disturbed);
    }
    second.record.take_growth(first.record);
    second
}

fn may_grow(record: &Record) -> bool {
    let mut judged = record.judged.iter().filter_map(|space| record.spaces.get(space));
    judged.any(|measured| !matches!(measured.growth, Growth::Quiet { .. }))
}

/// The call sites of the first report, with the iterations that only the second has run.
fn extended(mut first: Report, second: Report) -> Report {
    first.record.take_verdicts(second.record);
    first
}

fn with_run(mut first: Report, second: &Report) -> Report {
    comparison::add(&mut first.record, comparison::compared(&second.record));
    first.pending = first.pending.or_else(|| second.pending.clone());
    first
}

/// The proof also counts if the test is not deterministic.
fn decided(mut first: Report, second: Option<Report>) -> Report {
    // A run that did not end its measured iterations cannot decide.
    let measured = first.record.iterations;
    let Some(second) = second.filter(|second| second.record.iterations >= measured) else {
        let why = "a longer run wrote no complete record, so it is undecided whether memory grows";
        first.record.notes.push(why.to_owned());
        return first;
    };
    let moved = comparison::moved(&first.record, &second.record);
    if !moved.figures.is_empty() {
        // Its measured iterations are complete, even if its body failed beyond them.
        let is_instrument = |found: &Finding| found.code.row().class == Class::Instrument;
        let is_measured = !second.verdict.findings.iter().any(is_instrument);
        let why_alone = match (is_measured, moved.is_compared) {
            (true, true) => "",
            (true, false) => "; no limit or baseline judges them, so no further run compares them",
            (false, _) => "; it has a finding `not-measured`, so no further run compares them",
        };
        first.record.notes.push(format!(
            "the longer run measured other figures, so this test is not deterministic: \
             {}{why_alone}",
            moved.figures.join(", ")
        ));
        if is_measured && moved.is_compared {
            let further = comparison::of_longer_run(&first.record, &second.record);
            comparison::add(&mut first.record, further);
        }
    }
    (first.snapshot, first.pending) = (second.snapshot, second.pending);
    first.record.take_growth(second.record);
    blame::note_events(&mut first.record);
    first
}

/// True if the second run's call sites explain the first's figures. Other runs decide the growth,
/// and threads that outlive the body change retained bytes, so these count only if judged. Spaces
/// that no baseline has count only if a finding is about them.
fn reproduces(first: &Report, second: &Report) -> bool {
    let has = |code| first.verdict.has(code) || second.verdict.has(code);
    let asked = has(Code::Retained) || has(Code::Unstable) || first.pending.is_some();
    let unasked: &[&str] = if asked { &[] } else { &["retained", "retained_again"] };
    let figures = |report: &Report| {
        // `allocated` has no limit and is not in a baseline.
        let mut figures = comparison::without(comparison::compared(&report.record), &["allocated"]);
        let baseline = Figures::of(&report.record);
        let findings = || first.verdict.findings.iter().chain(&second.verdict.findings);
        let is_found = |space| findings().any(|finding| finding.space == Some(space));
        figures.0.retain(|space, _| baseline.0.contains_key(space) || is_found(*space));
        comparison::without(figures, unasked)
    };
    judged_spaces(&first.record) == judged_spaces(&second.record)
        && !comparison::differ(&figures(first), &figures(second))
}

/// Without those that the test has used only in iterations beyond the measured ones.
fn judged_spaces(record: &Record) -> Vec<Space> {
    let is_measured =
        |space: &&Space| !record.spaces.get(space).is_some_and(SpaceRecord::is_unused);
    record.judged.iter().filter(is_measured).copied().collect()
}

/// The call sites of the second report, the figures and the growth of the earlier runs.
fn explained(mut first: Report, mut second: Report) -> Report {
    second.record.repeats = first.record.repeats.clone();
    second.record.fault_sweep = first.record.fault_sweep.clone();
    second.record.soaked = first.record.soaked.clone();
    if second.record.repeats.is_some() {
        let further = comparison::compared(&second.record);
        comparison::add(&mut second.record, further);
    }
    let contained = blame::notes_of_events_held_once(&first.record, &second.record);
    let notes = std::mem::take(&mut first.record.notes);
    let missing = notes
        .into_iter()
        .filter(|note| !second.record.notes.contains(note) && !contained.contains(note));
    second.record.notes.extend(missing.collect::<Vec<_>>());
    if second.record.followed.is_some() {
        // It repeats the run that decided the growth, whose resident memory is without call stacks.
        second.record.spaces.extend(first.record.spaces.remove_entry(&Space::Process));
        second.record.values = second.record.values.take().or(first.record.values);
    } else if first.record.longer.is_some() || growth(&first.record) != growth(&second.record) {
        second.record.take_growth(first.record);
    } else {
        second.record.take_verdicts(first.record);
    }
    second
}

fn growth(record: &Record) -> Vec<u64> {
    record.spaces.values().map(|measured| measured.metrics.growth).collect()
}

fn unexplained(mut first: Report, has_second: bool) -> Report {
    let why = if has_second {
        "a second run, with call stacks, ended differently: this test is not deterministic, so \
         its bytes cannot be attributed to call sites"
    } else {
        "a second run, with call stacks, wrote no record"
    };
    for finding in &mut first.verdict.findings {
        if finding.code.is_about_memory() {
            let own = finding.hint.take().map(|hint| format!("{hint}; "));
            finding.hint = Some(format!("{}{why}", own.unwrap_or_default()));
        }
    }
    first.record.notes.push(why.to_owned());
    first
}

/// The first of the runs that the user asked for, judged by the figures of all.
pub fn together(
    mut first: Report,
    further: Vec<Figures>,
    asked: u32,
    baseline: &Baseline,
    level: impl Fn(Code) -> Level,
) -> Report {
    let others = other_findings(&first, baseline, &level);
    let mut all = comparison::runs(&first.record);
    all.extend(further);
    first.record.repeats = Some(Repeats { asked: Some(asked), runs: all });
    rejudged(first, others, baseline, &level)
}

#[cfg(test)]
mod tests;
