//! The further runs of a test whose first run measured figures only: one that repeats
//! a run that its own length disturbed, one that decides the growth, one that explains
//! figures by call stacks, and up to three that compare figures which differed. Each gives
//! its part to the report of the first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::baseline::{Baseline, Figures};
use crate::comparison;
use crate::finding::{Class, Code, Finding, Level};
use crate::protocol::{Follow, Reach, Report};
use crate::record::{Outcome, Record};
use crate::repeats::{MOST_RUNS, Repeats};
use crate::space::Space;
use crate::verdict;
use memcheck_limits::names;

/// When tests are run with attribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explain {
    /// Never: figures only.
    Never,
    /// A test that failed on memory, or whose figures are new, once more.
    #[default]
    Failed,
    /// Every test, at once.
    Always,
}

names!(Explain { "never" => Never, "failed" => Failed, "always" => Always });

impl Explain {
    /// What the first run of a test does.
    pub fn first(self) -> Run {
        match self {
            // The peak of a run with call stacks must be that of the measured iterations.
            Self::Always => Run { follow: Follow::Yes, ..Run::default() },
            Self::Never | Self::Failed => Run { reach: Reach::Horizon, ..Run::default() },
        }
    }
}

/// What one run of a test does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Whether it follows every block.
    pub follow: Follow,
    /// How far its iterations go.
    pub reach: Reach,
    /// The figures that it explains.
    pub expected: Option<Figures>,
}

/// A further run of a test. A caller goes through [`Stage::ALL`] in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Measures again without iterations beyond the measured ones, because those of
    /// the first run changed what the body did after them.
    Repeat,
    /// Goes on until the growth is decided.
    Decide,
    /// Follows every block, so that findings and new figures have call sites.
    Explain,
    /// Measures once more, because two runs measured different figures.
    Compare,
}

impl Stage {
    /// All stages, in the order in which they are run. Figures have differed between two
    /// runs before the first comparison, so the third makes [`MOST_RUNS`].
    pub const ALL: [Self; 6] =
        [Self::Repeat, Self::Decide, Self::Explain, Self::Compare, Self::Compare, Self::Compare];

    /// The stages that measure the figures of a test, without call sites.
    pub const FIGURES: [Self; 2] = [Self::Repeat, Self::Decide];

    /// The run of this stage; `None` if the report does not need it.
    pub fn run(self, explain: Explain, report: &Report) -> Option<Run> {
        let record = &report.record;
        let follow = if explain == Explain::Never { Follow::No } else { Follow::Yes };
        let expected = || Some(Figures::of(record));
        match self {
            Self::Repeat => record
                .followed
                .as_ref()
                .is_some_and(|followed| followed.disturbed || record.outcome != Outcome::Returned)
                .then(|| Run { reach: Reach::Screen, ..explain.first() }),
            Self::Decide => (record.outcome == Outcome::Returned && record.is_undecided())
                .then(|| Run { follow, reach: Reach::Decision, expected: expected() }),
            Self::Explain => (explain == Explain::Failed && needs_call_sites(report))
                .then(|| Run { follow, reach: Reach::Screen, expected: expected() }),
            Self::Compare => record
                .repeats
                .as_ref()
                .is_some_and(|repeats| repeats.asked.is_none() && repeats.runs.len() < MOST_RUNS)
                .then(|| Run { follow, reach: Reach::Screen, expected: expected() }),
        }
    }

    /// The report of the first run with what the run of this stage adds.
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
            (Self::Repeat | Self::Compare, None) => first,
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
            (Self::Explain, second) => unexplained(first, second.is_some()),
            (Self::Compare, Some(_)) => first,
        }
    }
}

/// Judges the record of a report, and adds findings that the record alone does not give.
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

/// Findings of a report that its record alone does not give: a snapshot that could not be
/// written, limits across tests.
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

/// True if a finding about memory, new figures or what is live at the end has no call sites
/// yet.
fn needs_call_sites(report: &Report) -> bool {
    let about_memory = |code: Code| code.row().class == Class::Measured && code.is_about_memory();
    let findings = &report.verdict.findings;
    let failed = findings.iter().any(|finding| about_memory(finding.code));
    let unexplained = failed || report.pending.is_some() || report.record.holds_once();
    report.record.attribution.is_none() && unexplained
}

/// True if the second run was measured, and its body came as far as that of the first, so
/// that the figures of both can be compared.
fn is_comparable(first: &Report, second: &Report) -> bool {
    !second.verdict.findings.iter().any(|finding| finding.code.cut_it_short())
        && first.record.outcome == second.record.outcome
        && second.record.iterations >= first.record.iterations
}

/// The report of the run that repeats a disturbed one, which may have measured other
/// figures in the same iterations. What the first one has seen of the growth stands, because
/// it went further.
fn repeated(first: Report, mut second: Report) -> Report {
    let disturbed = comparison::of_measured_iterations(&first.record);
    if is_comparable(&first, &second)
        && comparison::differ(&disturbed, &comparison::compared(&second.record))
    {
        comparison::add(&mut second.record, disturbed);
    }
    if first.record.outcome == Outcome::Returned {
        second.record.take_growth(first.record);
    }
    second
}

/// The first report, with the figures of a further run that measured others.
fn with_run(mut first: Report, second: &Report) -> Report {
    comparison::add(&mut first.record, comparison::compared(&second.record));
    first.pending = first.pending.or_else(|| second.pending.clone());
    first
}

/// The first report with the growth that a longer run proved. A leak that was proved is one
/// in a test that is not deterministic too.
fn decided(mut first: Report, second: Option<Report>) -> Report {
    // A run that did not even end its measured iterations has nothing to add.
    let measured = first.record.iterations;
    let Some(second) = second.filter(|second| second.record.iterations >= measured) else {
        let why = "a longer run left no whole report, so it is not decided whether memory grows";
        first.record.notes.push(why.to_owned());
        return first;
    };
    if !measures_alike(&first.record, &second.record) {
        let why = "the run that decided the growth measured other figures: this test is not \
                   deterministic";
        first.record.notes.push(why.to_owned());
        let further = comparison::of_measured_iterations(&second.record);
        if is_comparable(&first, &second)
            && comparison::differ(&comparison::compared(&first.record), &further)
        {
            comparison::add(&mut first.record, further);
        }
    }
    (first.snapshot, first.pending) = (second.snapshot, second.pending);
    first.record.take_growth(second.record);
    first
}

/// True if two runs of a test measured the same, apart from what the second can only
/// measure if it ends with the measured iterations.
fn measures_alike(first: &Record, second: &Record) -> bool {
    let figures = |record: &Record| {
        let mut figures = Figures::of(record);
        for by_name in figures.0.values_mut() {
            for name in ["growth", "peak_allocated", "retained"] {
                by_name.remove(name);
            }
        }
        figures
    };
    let allocated = |record: &Record| -> BTreeMap<Space, Vec<u64>> {
        let of = |space: &Space| Some((*space, record.spaces.get(space)?.allocated.clone()));
        record.judged.iter().filter_map(of).collect()
    };
    figures(first) == figures(second) && allocated(first) == allocated(second)
}

/// True if the second run measured what is to be explained: every figure, but for what
/// threads that outlive the body still held, unless somebody asks for it. The growth is
/// that of the first.
fn reproduces(first: &Report, second: &Report) -> bool {
    let has = |code| first.verdict.has(code) || second.verdict.has(code);
    let asked = has(Code::Retained) || has(Code::Unstable) || first.pending.is_some();
    let unasked: &[&str] = if asked { &[] } else { &["retained", "retained_again"] };
    let figures = |report: &Report| {
        // No limit and no baseline is about `allocated`.
        let figures = comparison::without(comparison::compared(&report.record), &["allocated"]);
        comparison::without(figures, unasked)
    };
    first.record.judged == second.record.judged
        && !comparison::differ(&figures(first), &figures(second))
}

/// The second report, which has call sites, with the growth that was decided before and
/// the figures of the runs before.
fn explained(first: Report, mut second: Report) -> Report {
    second.record.repeats = first.record.repeats.clone();
    if second.record.repeats.is_some() {
        let further = comparison::compared(&second.record);
        comparison::add(&mut second.record, further);
    }
    if first.record.longer.is_some() || growth(&first.record) != growth(&second.record) {
        second.record.take_growth(first.record);
    } else {
        second.record.followed = first.record.followed;
    }
    second
}

fn growth(record: &Record) -> Vec<u64> {
    record.spaces.values().map(|measured| measured.metrics.growth).collect()
}

/// The first report, which says why its bytes have no call sites.
fn unexplained(mut first: Report, has_second: bool) -> Report {
    let why = if has_second {
        "a second run, with call stacks, ended in another way: this test is not deterministic, \
         and its bytes cannot be put to places"
    } else {
        "a second run, with call stacks, left no report"
    };
    for finding in &mut first.verdict.findings {
        if finding.code.is_about_memory() {
            finding.hint = Some(why.to_owned());
        }
    }
    first.record.notes.push(why.to_owned());
    first
}

/// The report of a test that was run several times on request: the first one, judged by
/// the figures of all runs.
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
mod tests {
    use super::*;
    use crate::attribution::Attribution;
    use crate::limits::Layer;
    use crate::protocol::{Status, VERSION};
    use crate::record::{Followed, Metrics, SpaceRecord};
    use crate::size::Size;
    use crate::survivors::Growth;
    use crate::verdict::judge;
    use crate::verdict::tests::{GPU, armed, limits, record};

    fn level(code: Code) -> Level {
        code.default_level(false)
    }

    fn report(measured: SpaceRecord) -> Report {
        let record = record(measured);
        let verdict = judge(&record, &Baseline::Off, &limits(Layer::default()), level);
        Report {
            version: VERSION,
            record,
            unresolved: None,
            verdict,
            snapshot: None,
            pending: None,
        }
    }

    fn leaky() -> SpaceRecord {
        armed(Metrics { growth: 2 << 20, retained: 7, ..Metrics::default() })
    }

    fn undecided() -> SpaceRecord {
        SpaceRecord { growth: Growth::Unknown, ..armed(Metrics::default()) }
    }

    fn merge(stage: Stage, first: &Report, second: Option<Report>) -> Report {
        stage.merge(first.clone(), second, &Baseline::Off, level)
    }

    #[test]
    fn only_what_needs_call_sites_is_run_again() {
        let explain = |explain, report: &Report| Stage::Explain.run(explain, report);
        let clean = report(armed(Metrics::default()));
        assert_eq!(explain(Explain::Failed, &clean), None);
        assert_eq!(explain(Explain::Never, &report(leaky())), None);
        assert_eq!(explain(Explain::Always, &report(leaky())), None, "it was followed at once");
        let run = explain(Explain::Failed, &report(leaky())).unwrap();
        assert_eq!((run.follow, run.reach), (Follow::Yes, Reach::Screen));
        assert!(run.expected.is_some());
        let new = Report { pending: Some("a.snap.new".into()), ..clean };
        assert!(explain(Explain::Failed, &new).is_some());
    }

    #[test]
    fn what_the_measured_iterations_leave_undecided_is_run_until_it_is_decided() {
        let first = report(undecided());
        let run = Stage::Decide.run(Explain::Failed, &first).unwrap();
        assert_eq!((run.follow, run.reach), (Follow::Yes, Reach::Decision));
        let run = Stage::Decide.run(Explain::Never, &first).unwrap();
        assert_eq!((run.follow, run.reach), (Follow::No, Reach::Decision));
        assert_eq!(Stage::Decide.run(Explain::Failed, &report(leaky())), None);

        let found = Growth::Found { whole: true, exact: true, iterations: 165 };
        let mut longer = report(SpaceRecord { growth: found, ..leaky() });
        // Of more iterations: the peak and what is retained are others.
        longer.record.spaces.get_mut(&GPU).unwrap().metrics.peak_allocated = 1 << 30;
        longer.record.attribution = Some(Attribution::default());
        let merged = merge(Stage::Decide, &first, Some(longer.clone()));
        let metrics = merged.record.spaces[&GPU].metrics;
        assert_eq!((metrics.growth, metrics.peak_allocated, metrics.retained), (2 << 20, 0, 0));
        assert!(merged.verdict.has(Code::Leak), "{:?}", merged.verdict);
        assert!(merged.record.longer.is_some() && merged.record.attribution.is_none());
        assert_eq!(Stage::Decide.run(Explain::Failed, &merged), None);

        longer.record.spaces.get_mut(&GPU).unwrap().metrics.setup = 1;
        for (second, code) in [(None, Code::Undecided), (Some(longer), Code::Leak)] {
            let merged = merge(Stage::Decide, &first, second);
            assert_eq!(merged.record.notes.len(), 1, "{:?}", merged.record.notes);
            assert!(merged.verdict.has(code), "{:?}", merged.verdict);
            // The set-up of the longer run is another one, so figures are compared.
            let has_compared = merged.record.repeats.is_some();
            assert_eq!(has_compared, code == Code::Leak);
            assert_eq!(Stage::Compare.run(Explain::Failed, &merged).is_some(), has_compared);
        }
    }

    #[test]
    fn a_run_that_its_own_length_disturbed_is_repeated_without_it() {
        let followed = |disturbed| Followed {
            iterations: 65,
            seconds: 0.1,
            decided: true,
            disturbed,
            ended: None,
        };
        let mut first = report(armed(Metrics::default()));
        assert_eq!(Stage::Repeat.run(Explain::Failed, &first), None);
        first.record.followed = Some(followed(false));
        assert_eq!(Stage::Repeat.run(Explain::Failed, &first), None);
        first.record.followed = Some(followed(true));
        let run = Stage::Repeat.run(Explain::Failed, &first).unwrap();
        assert_eq!((run.follow, run.reach), (Follow::No, Reach::Screen));
        first.record.followed = Some(followed(false));
        first.record.outcome = Outcome::Panicked { message: "12 calls were expected".to_owned() };
        assert!(Stage::Repeat.run(Explain::Failed, &first).is_some());
        let second = report(undecided());
        assert_eq!(merge(Stage::Repeat, &first, Some(second.clone())), second);
    }

    #[test]
    fn a_second_run_that_left_nothing_to_compare_explains_nothing_and_says_so() {
        let first = report(leaky());
        let mut same = report(leaky());
        same.record.notes.push("second".to_owned());
        assert_eq!(merge(Stage::Explain, &first, Some(same.clone())), same);
        let mut other = same;
        other.record.outcome = Outcome::Panicked { message: "now".to_owned() };
        other.record.spaces.get_mut(&GPU).unwrap().metrics.peak_allocated += 1;
        for second in [Some(other), None] {
            let merged = merge(Stage::Explain, &first, second);
            assert_eq!(merged.record.notes.len(), 1, "{:?}", merged.record.notes);
            let hint = merged.verdict.findings[0].hint.as_deref().unwrap();
            assert!(hint.starts_with("a second run"), "{hint}");
            assert_eq!(Stage::Compare.run(Explain::Failed, &merged), None);
        }
    }

    /// The report of a run with this peak, and call sites if it is a second one.
    fn peak(bytes: u64, max_peak: u64, second: bool) -> Report {
        let mut record = record(armed(Metrics { peak_allocated: bytes, ..Metrics::default() }));
        record.limits = limits(Layer { max_peak: Some(Size(max_peak).into()), ..Layer::default() });
        record.attribution = second.then(Attribution::default);
        let verdict = judge(&record, &Baseline::Off, &record.limits, level);
        Report { record, verdict, ..report(armed(Metrics::default())) }
    }

    /// Goes through the stages from [`Stage::Explain`] on, with these peaks of the runs.
    fn stages(peaks: &[u64], max_peak: u64) -> (Report, usize) {
        let mut merged = peak(peaks[0], max_peak, false);
        let mut runs = 1;
        for stage in &Stage::ALL[2..] {
            let Some(run) = stage.run(Explain::Failed, &merged) else { continue };
            assert_eq!((run.follow, run.reach), (Follow::Yes, Reach::Screen));
            merged = merge(*stage, &merged, Some(peak(peaks[runs], max_peak, true)));
            runs += 1;
        }
        (merged, runs)
    }

    #[test]
    fn a_test_whose_runs_measure_the_same_has_no_further_run() {
        assert_eq!(stages(&[8], 8).1, 1);
        let (merged, runs) = stages(&[9, 9], 8);
        assert_eq!((runs, merged.record.repeats.is_none()), (2, true));
        assert!(merged.verdict.has(Code::PeakLimit) && !merged.verdict.has(Code::Unstable));
    }

    #[test]
    fn a_limit_between_the_peaks_of_five_runs_is_unstable() {
        let (merged, runs) = stages(&[9, 7, 9, 7, 7], 8);
        assert_eq!(runs, MOST_RUNS);
        assert_eq!(merged.verdict.findings.len(), 1, "{:?}", merged.verdict);
        let found = &merged.verdict.findings[0];
        assert_eq!((found.code, found.figure, found.limit), (Code::Unstable, Some(9), Some(8)));
        assert_eq!(found.range.as_ref().unwrap().values, [9, 7, 9, 7, 7]);
        assert!(found.message.contains("exceeds `max_peak` of 8 B in 2 of them"), "{found:?}");
        // The third run has measured what the first did, with call sites.
        assert!(merged.record.attribution.is_some());
        assert_eq!(merged.verdict.status, Status::Failed);
    }

    #[test]
    fn a_limit_that_every_run_exceeds_keeps_its_finding() {
        let (merged, runs) = stages(&[12, 9, 10, 9, 11], 8);
        assert_eq!((runs, merged.verdict.findings.len()), (MOST_RUNS, 1));
        let found = &merged.verdict.findings[0];
        assert_eq!((found.code, found.figure), (Code::PeakLimit, Some(12)));
        assert!(found.hint.as_deref().unwrap().contains("not deterministic"), "{found:?}");
        let note = merged
            .record
            .repeats
            .unwrap()
            .note(&crate::finding::reported(&merged.verdict.findings))
            .unwrap();
        assert!(note.ends_with("`peak_allocated` of cuda:0 is 9 B to 12 B in 5 runs"), "{note}");
    }

    #[test]
    fn a_range_below_the_limit_passes_with_a_note() {
        let mut first = peak(7, 8, false);
        first.pending = Some("a.snap.new".into());
        let merged = merge(Stage::Explain, &first, Some(peak(8, 8, true)));
        assert_eq!(merged.verdict.status, Status::Passed, "{:?}", merged.verdict);
        assert!(merged.record.repeats.as_ref().unwrap().note(&[]).is_some());
        assert_eq!(merged.pending, first.pending);
        assert!(Stage::Compare.run(Explain::Failed, &merged).is_some());
    }

    #[test]
    fn a_comparison_without_a_report_leaves_the_verdict_as_it_was() {
        let first = merge(Stage::Explain, &peak(9, 8, false), Some(peak(7, 8, true)));
        assert!(first.verdict.has(Code::Unstable), "{:?}", first.verdict);
        assert_eq!(merge(Stage::Compare, &first, None), first);
        let mut other = peak(5, 8, true);
        other.record.outcome = Outcome::Failed { error: "now".to_owned() };
        assert_eq!(merge(Stage::Compare, &first, Some(other)), first);
        let mut unseen = peak(0, 8, true);
        unseen.verdict.findings = vec![Finding::new(Code::NotMeasured, "events were lost")];
        assert_eq!(merge(Stage::Compare, &first, Some(unseen)), first);
    }

    #[test]
    fn runs_that_were_asked_for_are_judged_together() {
        let all = |peaks: &[u64]| {
            let further = peaks[1..].iter().map(|bytes| peak(*bytes, 8, false).record);
            let further = further.map(|record| comparison::figures(&record)).collect();
            let asked = u32::try_from(peaks.len()).unwrap();
            together(peak(peaks[0], 8, false), further, asked, &Baseline::Off, level)
        };
        let same = all(&[7, 7, 7]);
        assert_eq!(same.verdict.status, Status::Passed);
        assert_eq!(same.record.repeats.unwrap().asked, Some(3));
        // No limit lies between them, and still they are not identical.
        let moved = all(&[7, 6, 7]);
        assert_eq!(moved.verdict.status, Status::Failed);
        let found = &moved.verdict.findings[0];
        assert_eq!((found.code, found.limit), (Code::Unstable, None));
        assert_eq!(Stage::Compare.run(Explain::Failed, &moved), None);
        assert!(all(&[9, 7]).verdict.findings[0].message.contains("exceeds"));
    }

    #[test]
    fn the_run_that_explains_keeps_the_growth_that_a_longer_run_decided() {
        let mut first = report(leaky());
        first.record.longer = Some(Attribution::default());
        let second = report(undecided());
        let second = Report { pending: None, ..second };
        let mut second = second;
        second.record.spaces.get_mut(&GPU).unwrap().metrics.retained = 7;
        second.record.attribution = Some(Attribution::default());
        let merged = merge(Stage::Explain, &first, Some(second));
        assert_eq!(merged.record.spaces[&GPU].metrics.growth, 2 << 20);
        assert!(merged.record.attribution.is_some() && merged.record.longer.is_some());
    }
}
