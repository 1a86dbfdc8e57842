//! The runs that a report needs, and the part that each of them adds.

mod explaining;
mod longer_run;
mod soak;

use super::*;
use crate::growth::lifetimes::Open;
use crate::growth::survivors::Growth;
use crate::judgement::baseline::{Baseline, Holders};
use crate::judgement::finding::{Code, Level};
use crate::judgement::verdict::Status;
use crate::limits::Layer;
use crate::measurement::attribution::Attribution;
use crate::measurement::fault_sweep::SweepResult;
use crate::measurement::record::example::{GPU, armed, limits, record};
use crate::measurement::record::{Followed, Metrics, Outcome, SpaceRecord};
use crate::measurement::repeats::MOST_RUNS;
use crate::runs::view::hint;
use crate::size::Size;
use crate::space::Space;
use crate::wire::protocol::Reach;

fn level(code: Code) -> Level {
    code.default_level(false)
}

const OFF: Gate<'static> = Gate { baseline: &Baseline::Off, level: &level };
const NEW: Gate<'static> = Gate { baseline: &Baseline::Missing, level: &level };

/// A record, and what is seen in it.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    record: Record,
    verdict: Verdict,
}

impl From<Record> for Seen {
    fn from(record: Record) -> Self {
        let verdict = conclude(OFF.judge(&record), level);
        Self { record, verdict }
    }
}

fn report(measured: SpaceRecord) -> Seen {
    record(measured).into()
}

fn run_of(stage: Stage, record: Option<Record>) -> Run {
    let finding = record.is_none().then(|| Finding::new(Code::Crashed, "SIGSEGV"));
    Run { stage, plan: RunPlan::default(), record, finding }
}

/// The run of a stage that a test needs after the first.
fn needed_by(stage: Stage, explain: Explain, first: &Seen) -> Option<RunPlan> {
    needed_with(stage, explain, first, &OFF)
}

fn needed_with(stage: Stage, explain: Explain, first: &Seen, gate: &Gate<'_>) -> Option<RunPlan> {
    super::needed(stage, explain, &View::new(Merged::from(first.record.clone()), gate, None))
}

fn leaky() -> SpaceRecord {
    armed(Metrics { growth: 2 << 20, retained: 7, ..Metrics::default() })
}

fn undecided() -> SpaceRecord {
    SpaceRecord { growth: Growth::Unknown, ..armed(Metrics::default()) }
}

/// What two runs show together.
fn merge(stage: Stage, first: &Seen, second: Option<Seen>) -> Seen {
    let second = run_of(stage, second.map(|second| second.record));
    let mut test = MeasuredTest::new(Explain::Failed, [stage]);
    test.runs = vec![run_of(Stage::First, Some(first.record.clone())), second];
    let Concluded { record, verdict, .. } = test.judge(&OFF);
    Seen { record: record.expect("the first run has one"), verdict }
}

#[test]
fn only_what_needs_call_sites_is_run_again() {
    let explain = |explain, report: &Seen| needed_by(Stage::Explain, explain, report);
    let clean = report(armed(Metrics::default()));
    assert_eq!(explain(Explain::Failed, &clean), None);
    assert_eq!(explain(Explain::Never, &report(leaky())), None);
    assert_eq!(explain(Explain::Always, &report(leaky())), None, "it was followed at once");
    let run = explain(Explain::Failed, &report(leaky())).unwrap();
    assert_eq!((run.follow, run.reach), (Follow::Yes, Reach::Screen));
    assert!(needed_with(Stage::Explain, Explain::Failed, &clean, &NEW).is_some());
}

#[test]
fn what_the_measured_iterations_leave_undecided_is_run_until_it_is_decided() {
    let first = report(undecided());
    let run = needed_by(Stage::Decide, Explain::Failed, &first).unwrap();
    assert_eq!((run.follow, run.reach), (Follow::Yes, Reach::Decision));
    let run = needed_by(Stage::Decide, Explain::Never, &first).unwrap();
    assert_eq!((run.follow, run.reach), (Follow::No, Reach::Decision));
    assert_eq!(needed_by(Stage::Decide, Explain::Failed, &report(leaky())), None);

    let found = Growth::Found { whole: true, exact: true, iterations: 165 };
    let mut longer = report(SpaceRecord { growth: found, ..leaky() });
    // The longer run has more iterations, so its peak and its retained bytes must not be taken.
    longer.record.spaces.get_mut(&GPU).unwrap().metrics.peak_allocated = 1 << 30;
    longer.record.attribution = Some(Attribution::default());
    let merged = merge(Stage::Decide, &first, Some(longer.clone()));
    let metrics = merged.record.spaces[&GPU].metrics;
    assert_eq!((metrics.growth, metrics.peak_allocated, metrics.retained), (2 << 20, 0, 0));
    assert!(merged.verdict.has(Code::Leak), "{:?}", merged.verdict);
    assert!(merged.record.longer.is_some() && merged.record.attribution.is_none());
    assert_eq!(needed_by(Stage::Decide, Explain::Failed, &merged), None);

    longer.record.spaces.get_mut(&GPU).unwrap().metrics.setup = 1;
    for (second, code) in [(None, Code::Undecided), (Some(longer), Code::Leak)] {
        let merged = merge(Stage::Decide, &first, second);
        assert_eq!(merged.record.notes.len(), 1, "{:?}", merged.record.notes);
        assert!(merged.verdict.has(code), "{:?}", merged.verdict);
        // The longer run has a different `setup`, so the figures of both runs are kept.
        let has_compared = merged.record.repeats.is_some();
        assert_eq!(has_compared, code == Code::Leak);
        assert_eq!(needed_by(Stage::Compare, Explain::Failed, &merged).is_some(), has_compared);
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
    assert_eq!(needed_by(Stage::Repeat, Explain::Failed, &first), None);
    first.record.followed = Some(followed(false));
    assert_eq!(needed_by(Stage::Repeat, Explain::Failed, &first), None);
    first.record.followed = Some(followed(true));
    let run = needed_by(Stage::Repeat, Explain::Failed, &first).unwrap();
    assert_eq!((run.follow, run.reach), (Follow::No, Reach::Screen));
    first.record.followed = Some(followed(false));
    first.record.outcome = Outcome::Panicked { message: "12 calls were expected".to_owned() };
    assert!(needed_by(Stage::Repeat, Explain::Failed, &first).is_some());
    // The first run has seen more iterations, although it ended in them.
    first.record.spaces.insert(GPU, undecided());
    let second = report(armed(Metrics::default()));
    let merged = merge(Stage::Repeat, &first, Some(second));
    assert_eq!(merged.record.outcome, Outcome::Returned);
    assert!(needed_by(Stage::Decide, Explain::Failed, &merged).is_some());
}

#[test]
fn a_first_run_with_call_sites_is_followed_by_one_that_looks_for_late_leaks() {
    let mut first = report(armed(Metrics::default()));
    assert_eq!(needed_by(Stage::Extend, Explain::Always, &first), None);
    first.record.can_go_on = true;
    assert_eq!(needed_by(Stage::Extend, Explain::Failed, &first), None);
    let run = needed_by(Stage::Extend, Explain::Always, &first).unwrap();
    assert_eq!((run.follow, run.reach), (Follow::Yes, Reach::Horizon));
    let followed =
        Followed { iterations: 65, seconds: 0.1, decided: false, disturbed: true, ended: None };
    let mut second = report(undecided());
    second.record.followed = Some(followed);
    // Whether the body panicked in them does not matter.
    second.record.outcome = Outcome::Panicked { message: "no batch".to_owned() };
    let merged = merge(Stage::Extend, &first, Some(second.clone()));
    assert_eq!(merged.record.outcome, Outcome::Returned);
    second.record.spaces.insert(GPU, armed(Metrics::default()));
    let quiet = merge(Stage::Extend, &first, Some(second));
    assert_eq!((quiet.verdict, quiet.record.followed.is_some()), (first.verdict.clone(), true));
    assert!(needed_by(Stage::Decide, Explain::Always, &merged).is_some());
    assert_eq!(merge(Stage::Extend, &first, None), first);
}

#[test]
fn a_run_with_call_sites_keeps_the_verdict_of_the_runs_before() {
    let open = Growth::Undecided { open: Open::Rare, bytes: 9 << 40, iterations: 1_002 };
    for growth in [open, Growth::Unknown] {
        let measured = SpaceRecord { growth, ..armed(Metrics::default()) };
        let mut first = report(measured);
        first.record.notes.push("a longer run wrote no complete record".to_owned());
        let mut second = report(armed(Metrics::default()));
        second.record.attribution = Some(Attribution::default());
        let merged = merge(Stage::Explain, &first, Some(second));
        assert!(merged.record.attribution.is_some());
        assert_eq!(merged.record.spaces[&GPU].growth, growth);
        assert_eq!(merged.record.notes.len(), 1);
        assert!(merged.verdict.has(Code::Undecided), "{:?}", merged.verdict);
    }
}

#[test]
fn a_leak_on_a_gpu_that_is_first_used_after_the_measured_iterations_is_judged() {
    let late = Space::Cuda(1);
    let short = report(armed(Metrics::default()));
    let mut longer = short.clone();
    longer.record.judged.push(late);
    longer.record.spaces.insert(late, undecided());
    longer.record.followed = Some(Followed {
        iterations: 65,
        seconds: 0.1,
        decided: false,
        disturbed: true,
        ended: None,
    });
    let merged = merge(Stage::Repeat, &longer, Some(short.clone()));
    assert!(merged.record.judged.contains(&late));
    let found = Growth::Found { whole: true, exact: true, iterations: 165 };
    longer.record.spaces.insert(late, SpaceRecord { growth: found, ..leaky() });
    longer.record.attribution = Some(Attribution::default());
    let decided = merge(Stage::Decide, &merged, Some(longer));
    assert!(decided.verdict.has(Code::Leak), "{:?}", decided.verdict);
    // The run with call stacks has no iterations beyond the measured ones.
    let explained = merge(Stage::Explain, &decided, Some(short));
    assert!(explained.verdict.has(Code::Leak) && explained.record.repeats.is_none());
}

#[test]
fn a_finding_keeps_its_hint_if_the_second_run_explains_nothing() {
    let mut findings = report(leaky()).verdict.findings;
    findings[0].hint = Some("the driver refused 1 free".to_owned());
    hint(&mut findings, Some("a second run, with call stacks, wrote no record"));
    let hint = findings[0].hint.as_deref();
    assert_eq!(
        hint,
        Some("the driver refused 1 free; a second run, with call stacks, wrote no record")
    );
    let merged = merge(Stage::Explain, &report(leaky()), None);
    let hint = merged.verdict.findings[0].hint.as_deref();
    assert_eq!(hint, Some("a second run, with call stacks, wrote no record"));
    let mut test = MeasuredTest::new(Explain::Never, []);
    test.runs = vec![run_of(Stage::First, Some(report(leaky()).record))];
    let never = test.judge(&OFF).verdict.findings[0].hint.clone().unwrap();
    assert!(never.contains("its line is not known, because `--explain never`"), "{never}");
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
        assert_eq!(needed_by(Stage::Compare, Explain::Failed, &merged), None);
    }
}

fn peak(bytes: u64, max_peak: u64, second: bool) -> Seen {
    let mut record = record(armed(Metrics { peak_allocated: bytes, ..Metrics::default() }));
    record.limits = limits(Layer { max_peak: Some(Size(max_peak).into()), ..Layer::default() });
    record.attribution = second.then(Attribution::default);
    record.into()
}

/// `peaks` are those of the runs. Returns the merged report and the number of runs.
fn stages(peaks: &[u64], max_peak: u64) -> (Seen, usize) {
    let mut merged = peak(peaks[0], max_peak, false);
    let mut runs = 1;
    for stage in &Stage::ALL[2..] {
        let Some(run) = needed_by(*stage, Explain::Failed, &merged) else { continue };
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
        .note(&crate::judgement::finding::reported(&merged.verdict.findings))
        .unwrap();
    assert!(note.ends_with("`peak_allocated` of cuda:0 is 9 B to 12 B in 5 runs"), "{note}");
}

#[test]
fn a_range_below_the_limit_passes_with_a_note() {
    let first = peak(7, 8, false);
    let merged = merge(Stage::Explain, &first, Some(peak(8, 8, true)));
    assert_eq!(merged.verdict.status, Status::Passed, "{:?}", merged.verdict);
    assert!(merged.record.repeats.as_ref().unwrap().note(&[]).is_some());
    let runs = [(Stage::First, peak(7, 8, false)), (Stage::Explain, peak(8, 8, true))];
    let mut test = MeasuredTest::new(Explain::Failed, Stage::ALL);
    test.runs = runs.map(|(stage, seen)| run_of(stage, Some(seen.record))).into();
    assert!(test.judge(&NEW).is_pending);
    assert!(needed_by(Stage::Compare, Explain::Failed, &merged).is_some());
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
    unseen.record.lost_events = 1;
    assert_eq!(merge(Stage::Compare, &first, Some(unseen)), first);
}

#[test]
fn runs_that_were_asked_for_are_judged_together() {
    let all = |peaks: &[u64]| {
        let further = peaks[1..].iter().map(|bytes| peak(*bytes, 8, false).record);
        let further = further.map(|record| comparison::figures(&record)).collect();
        let asked = u32::try_from(peaks.len()).unwrap();
        let mut test = MeasuredTest::new(Explain::Never, Stage::FIGURES);
        test.runs = vec![run_of(Stage::First, Some(peak(peaks[0], 8, false).record))];
        test.series = Some((asked, further));
        let Concluded { record, verdict, .. } = test.judge(&OFF);
        Seen { record: record.unwrap(), verdict }
    };
    let same = all(&[7, 7, 7]);
    assert_eq!(same.verdict.status, Status::Passed);
    assert_eq!(same.record.repeats.unwrap().asked, Some(3));
    // No limit is between the values, but a difference is a finding if repeats were asked for.
    let moved = all(&[7, 6, 7]);
    assert_eq!(moved.verdict.status, Status::Failed);
    let found = &moved.verdict.findings[0];
    assert_eq!((found.code, found.limit), (Code::Unstable, None));
    assert_eq!(needed_by(Stage::Compare, Explain::Failed, &moved), None);
    assert!(all(&[9, 7]).verdict.findings[0].message.contains("exceeds"));
}

#[test]
fn the_run_that_explains_keeps_the_growth_that_a_longer_run_decided() {
    let mut first = report(leaky());
    first.record.longer = Some(Attribution::default());
    let mut second = report(undecided());
    second.record.spaces.get_mut(&GPU).unwrap().metrics.retained = 7;
    second.record.attribution = Some(Attribution::default());
    let merged = merge(Stage::Explain, &first, Some(second));
    assert_eq!(merged.record.spaces[&GPU].metrics.growth, 2 << 20);
    assert!(merged.record.attribution.is_some() && merged.record.longer.is_some());
}

/// The decision about growth depends on them.
#[test]
fn unknown_values_of_further_iterations_are_marked_whichever_run_read_them() {
    use crate::measurement::unknown_reads::UnknownReads;
    let further = UnknownReads { further: 9, ..UnknownReads::default() };
    let reads = |merged: &Seen| merged.record.values.as_ref().map(|it| (it.reads, it.further));
    let with = |mut report: Seen, values: &UnknownReads| {
        report.record.values = Some(values.clone());
        report
    };
    let layer = Layer { strict_values: Some(true), ..Layer::default() };
    let mut first = report(undecided());
    first.record.limits = limits(layer);
    let found = Growth::Found { whole: true, exact: true, iterations: 165 };
    let longer = with(report(SpaceRecord { growth: found, ..leaky() }), &further);
    let decided = merge(Stage::Decide, &first, Some(longer.clone()));
    assert_eq!(reads(&decided), Some((0, 9)));
    assert!(decided.verdict.has(Code::NotMeasured), "{:?}", decided.verdict);
    // The mark of the measured iterations has an exact number.
    let measured = with(first, &UnknownReads { reads: 2, ..UnknownReads::default() });
    assert_eq!(reads(&merge(Stage::Decide, &measured, Some(longer))), Some((2, 0)));
    // The run that explains has no further iterations.
    let quiet = with(report(armed(Metrics::default())), &further);
    let explained = merge(Stage::Explain, &quiet, Some(report(armed(Metrics::default()))));
    assert_eq!(reads(&explained), Some((0, 9)));
}

#[test]
fn a_run_that_was_not_started_changes_nothing_and_is_not_asked_for_again() {
    let mut test = MeasuredTest::new(Explain::Failed, Stage::ALL);
    assert_eq!(test.next(&OFF).map(|(stage, _)| stage), Some(Stage::First));
    test.runs.push(run_of(Stage::First, Some(report(leaky()).record)));
    let before = test.judge(&OFF);
    assert_eq!(test.next(&OFF).map(|(stage, _)| stage), Some(Stage::Explain));
    test.runs.push(Run { finding: None, ..run_of(Stage::Explain, None) });
    assert_eq!((test.next(&OFF), test.judge(&OFF)), (None, before));
}

#[test]
fn findings_across_tests_need_call_sites_although_the_stage_has_passed() {
    let mut test = MeasuredTest::new(Explain::Failed, Stage::ALL);
    test.runs.push(run_of(Stage::First, Some(report(armed(Metrics::default())).record)));
    let swept = Some(SweepResult::default());
    let sweep = Record { fault_sweep: swept, ..report(armed(Metrics::default())).record };
    test.runs.push(run_of(Stage::Sweep, Some(sweep)));
    assert_eq!(test.next(&OFF), None);
    let findings = vec![Finding::new(Code::PeakLimit, "more than 0.6 x train_plain")];
    test.across = Some(Across { findings, too_much: true, ..Across::default() });
    assert_eq!(test.next(&NEW).map(|(stage, _)| stage), Some(Stage::Explain));
    let judged = test.judge(&NEW);
    assert_eq!((judged.verdict.status, judged.is_pending), (Status::Failed, false));
    test.runs.push(run_of(Stage::Explain, Some(report(armed(Metrics::default())).record)));
    assert_eq!(test.next(&NEW), None);
}

#[test]
fn no_finding_advises_to_accept_and_only_figures_that_can_become_the_baseline_are_pending() {
    let peak = |peak_allocated, growth| {
        record(armed(Metrics { peak_allocated, growth, ..Metrics::default() }))
    };
    let then = peak(5, 0);
    let baseline = Baseline::Found {
        figures: Figures::of(&then),
        holders: Holders::of(&then),
        facts: then.facts.clone(),
    };
    let hints = |now: Record, baseline: &Baseline| {
        let mut test = MeasuredTest::new(Explain::Never, []);
        test.runs = vec![run_of(Stage::First, Some(now))];
        let judged = test.judge(&Gate { baseline, level: &level });
        let hints = judged.verdict.findings.into_iter().map(|it| (it.code, it.hint));
        (judged.is_pending, hints.collect::<Vec<_>>())
    };
    let corrupt = Baseline::Corrupt("cut".to_owned());
    for baseline in [&baseline, &Baseline::Missing, &corrupt] {
        for (growth, is_pending) in [(0, true), (2 << 20, false)] {
            let (pending, found) = hints(peak(9, growth), baseline);
            assert_eq!(pending, is_pending, "{found:?}");
            let accepts =
                |hint: &Option<String>| hint.as_ref().is_some_and(|it| it.contains("accept"));
            assert!(!found.iter().any(|(_, hint)| accepts(hint)), "{found:?}");
        }
    }
    let (_, found) = hints(peak(9, 2 << 20), &corrupt);
    assert_eq!(found[0].0, Code::Leak);
    assert_eq!(found[1].1.as_deref(), Some("restore the file from version control"));
}
