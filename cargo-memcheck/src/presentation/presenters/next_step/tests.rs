//! The steps for each kind of outcome, and their commands.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use memcheck_core::device::Family;
use memcheck_core::judgement::diagnosis::RULES;
use memcheck_core::judgement::finding::TABLE;
use memcheck_core::measurement::stack::Sources;
use memcheck_core::runs::process_end::{End, ExpectedTest, Written};
use memcheck_core::wire::last_state::{LastState, Moment};

use super::*;
use crate::discovery::task::example::task;
use crate::invocation::cli::refusal;
use crate::presentation::presenters::example::leaky;

fn outcome(codes: &[Code], pending: Option<&str>) -> TestOutcome {
    let mut outcome = leaky();
    let findings = codes.iter().map(|code| Finding::new(*code, "message")).collect();
    let denied = codes.iter().copied().filter(|code| *code == Code::MissingBaseline).collect();
    outcome.verdict = Verdict { status: Status::Failed, findings, denied };
    let report = outcome.report.as_mut().unwrap();
    report.snapshot = Some("/w/snapshots/a@cpu.snap".into());
    report.pending = pending.map(Into::into);
    outcome
}

const NEXT_TO_BASELINE: Option<&str> = Some("/w/snapshots/a@cpu.snap.new");

fn of_first(outcome: &TestOutcome) -> Option<String> {
    let baselines = ["--baselines", "kept here"].map(str::to_owned);
    Some(first(&task(), outcome)?.command(&task(), &baselines))
}

#[test]
fn a_panic_is_run_again_with_a_backtrace_and_a_killed_test_as_it_was() {
    let mut panicked = outcome(&[Code::TestFailed], None);
    let command = |outcome: &TestOutcome| first(&task(), outcome).unwrap().command(&task(), &[]);
    assert_eq!(first(&task(), &panicked), Some(NextStep::ShowOutput), "an error has no backtrace");
    panicked.output.stderr =
        "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace".to_owned();
    let own = "cargo memcheck run -p app --test mem a::b --exact";
    let backtrace = format!("RUST_BACKTRACE=1 {own} --no-capture --device cpu");
    assert_eq!(command(&panicked), backtrace);
    assert_eq!(command(&TestOutcome::killed(None)), format!("{own} --device cpu"));
    let unmeasured = outcome(&[Code::NotMeasured], None);
    assert_eq!(first(&task(), &unmeasured), Some(NextStep::Doctor));
    let without_record = TestOutcome { report: None, ..unmeasured };
    assert_eq!(first(&task(), &without_record), Some(NextStep::ShowOutput));
}

#[test]
fn every_step_is_there_once_and_a_failed_test_is_run_again_at_most_once() {
    for row in TABLE {
        let mut outcome = outcome(&[row.code], NEXT_TO_BASELINE);
        outcome.verdict.denied = vec![row.code];
        let steps = all(&task(), &outcome);
        for (number, step) in steps.iter().enumerate() {
            assert!(!steps[..number].contains(step), "{}: {steps:?}", row.name);
        }
        let runs = steps.iter().filter(|step| step.runs()).count();
        assert!(runs <= 1, "{}: {steps:?}", row.name);
        assert_eq!(runs == 0, row.class == Class::Bookkeeping, "{}: {steps:?}", row.name);
        let profiled = TestOutcome { is_profiled: true, ..outcome };
        let left = all(&task(), &profiled);
        let expected = steps.into_iter().filter(|step| *step != NextStep::Profile);
        assert_eq!(left, expected.collect::<Vec<_>>(), "{}", row.name);
    }
}

#[test]
fn new_figures_are_accepted_by_the_names_of_their_snapshots_only() {
    let advice = |codes: &[Code], pending| {
        acceptance(&task(), &outcome(codes, pending), &[]).map(|(_, command)| command)
    };
    let regressions = [Code::PeakRegression, Code::GrowthRegression];
    let scoped = "cargo memcheck accept a@cpu.snap";
    assert_eq!(advice(&regressions, NEXT_TO_BASELINE).unwrap(), scoped);
    assert_eq!(advice(&regressions, None), None, "there is nothing to accept");
    assert_eq!(advice(&[Code::MissingBaseline], NEXT_TO_BASELINE), None);
}

#[test]
fn a_leak_with_a_remedy_is_run_again_first_and_a_regression_is_accepted_or_profiled() {
    let words = |outcome: &TestOutcome| {
        let advised = advised(&task(), outcome).into_iter();
        advised.map(|(when, step)| (when, step.command(&task(), &[]))).collect::<Vec<_>>()
    };
    let of_test = |command: &str| format!("{command} -p app --test mem a::b --exact --device cpu");
    let (run, profile) = (of_test("cargo memcheck run"), of_test("cargo memcheck profile"));
    let leak = leaky();
    let after = ("after the fix:", run.clone());
    assert_eq!(words(&leak), [after.clone(), ("for all call sites:", profile.clone())]);
    assert_eq!(first(&task(), &leak), Some(NextStep::Run));
    let profiled = words(&TestOutcome { is_profiled: true, ..leaky() });
    assert_eq!(profiled, std::slice::from_ref(&after));
    // Without a line, or without a cause, the call sites come first.
    let mut general = leaky();
    let cause = general.verdict.findings[0].cause.as_mut().unwrap();
    let rule = RULES.iter().find(|rule| rule.code == "tensor-kept").unwrap();
    (cause.code, cause.remedy) = (rule.code.to_owned(), rule.remedy.to_owned());
    assert_eq!(words(&general), [("next:", profile.clone())]);
    general.verdict.findings[0].cause.as_mut().unwrap().remedy = "at src/a.rs:7".to_owned();
    assert_eq!(words(&general), [after.clone(), ("for all call sites:", profile.clone())]);
    assert_eq!(words(&outcome(&[Code::Leak], None)), [("next:", profile.clone())]);
    let accept = (INTENDED, "cargo memcheck accept a@cpu.snap".to_owned());
    let risen = outcome(&[Code::PeakRegression], NEXT_TO_BASELINE);
    assert_eq!(words(&risen), [accept, ("if not:", profile.clone())]);
    assert_eq!(words(&outcome(&[Code::PeakRegression], None)), [("next:", profile)]);
}

#[cfg(feature = "exports")]
#[test]
fn snapshots_of_several_tests_are_reviewed_by_one_command() {
    let of = |count: usize, elsewhere| {
        let one = |number| Snapshots { names: vec![format!("t{number}@cpu.snap")], elsewhere };
        let all: Vec<Snapshots> = (0..count).map(one).collect();
        Snapshots::joined(&all).map(|joined| joined.review(&[]))
    };
    assert_eq!(of(0, false), None);
    assert_eq!(of(2, false).unwrap(), "cargo memcheck review t0@cpu.snap t1@cpu.snap");
    assert_eq!(of(1, true).unwrap(), "cargo memcheck review t0@cpu.snap --from DIR");
    assert_eq!(of(snapshots::MOST_NAMES + 1, false).unwrap(), "cargo memcheck review");
}

#[test]
fn a_killed_test_is_watched_and_another_crash_is_run_with_its_output() {
    let mut crashed = outcome(&[Code::Crashed], None);
    let step = |outcome: &TestOutcome| {
        let first = first(&task(), outcome).unwrap();
        assert_eq!(all(&task(), outcome)[0], first);
        first
    };
    assert_eq!(step(&crashed), NextStep::ShowBacktrace);
    crashed.verdict.findings[0].message = "SIGKILL (signal 9) ended the process".to_owned();
    assert_eq!(step(&crashed), NextStep::Watch);
    assert_eq!(
        NextStep::Watch.command(&task(), &[]),
        "cargo memcheck profile -p app --test mem a::b --exact --live --device cpu"
    );
    let killed = ExitStatus::from_raw(9);
    let last = |live| LastState {
        moment: Moment::In(4),
        live,
        warmup: 2,
        measured: 10,
        iterates: None,
        has_body: true,
        stack: None,
        sources: Sources::default(),
    };
    let expected = ExpectedTest { test: "a::b", family: Family::Cpu, timeout: None };
    for (live, expected_step) in [(1 << 20, NextStep::ShowOutput), (1 << 30, NextStep::Watch)] {
        let end = End::Exited(killed);
        let ended = process_end::judge(&end, Written::Nothing, Some(last(live)), expected);
        crashed.verdict.findings = ended.finding.into_iter().collect();
        assert_eq!(step(&crashed), expected_step, "{live}");
    }
}

#[test]
fn codes_and_the_explanation_are_in_the_order_of_the_findings_that_are_shown() {
    let both = outcome(&[Code::AllocationsRegression, Code::PeakRegression], None);
    assert_eq!(codes(&both.verdict), "peak-regression, allocations-regression");
    let explained = NextStep::Explain("peak-regression".to_owned());
    assert!(all(&task(), &both).contains(&explained));
}

#[test]
fn every_command_for_every_finding_is_accepted_by_the_command_line() {
    let mut task = task();
    let TestSubject::Test(entry) = &mut task.subject else { panic!("a test") };
    entry.name = "a::b of 'c'".to_owned();
    let baselines = ["--baselines", "kept here"].map(str::to_owned);
    let mut count = 0;
    for ignored in [false, true] {
        let TestSubject::Test(entry) = &mut task.subject else { panic!("a test") };
        entry.ignored = ignored;
        for id in ["app", "app::mem", "app::bin/b", "app::bench/b", "app::example/e"] {
            id.clone_into(&mut task.binary.id);
            for row in TABLE {
                for pending in [None, NEXT_TO_BASELINE, Some("/ci/pending/-a@cpu.snap.new")] {
                    let mut outcome = outcome(&[row.code], pending);
                    outcome.verdict.denied = vec![row.code];
                    let steps = first(&task, &outcome).into_iter().chain(all(&task, &outcome));
                    for step in steps {
                        let command = step.command(&task, &baselines);
                        let command = command.trim_start_matches("RUST_BACKTRACE=1 ");
                        assert_eq!(refusal(command), None);
                        let runs = matches!(command.split(' ').nth(2), Some("run" | "profile"));
                        let states = command.contains(" --run-ignored all");
                        assert_eq!(states, runs && ignored, "{command}");
                        count += 1;
                    }
                }
            }
        }
    }
    assert!(count > 2_000, "{count}");
}

#[test]
fn a_measured_finding_decides_the_first_step() {
    let both = outcome(&[Code::MissingBaseline, Code::Leak], None);
    assert_eq!(
        of_first(&both).unwrap(),
        "cargo memcheck profile -p app --test mem a::b --exact --device cpu"
    );
    assert_eq!(codes(&both.verdict), "missing-baseline, leak");
    let mut allowed = outcome(&[Code::Improved], None);
    allowed.verdict.status = Status::Passed;
    assert_eq!(all(&task(), &allowed)[0], NextStep::Profile);
    assert_eq!(codes(&allowed.verdict), "");
}

#[test]
fn accepting_and_reviewing_need_a_pending_snapshot() {
    let new = |pending| outcome(&[Code::MissingBaseline], pending);
    assert_eq!(
        of_first(&new(NEXT_TO_BASELINE)).unwrap(),
        "cargo memcheck review a@cpu.snap --baselines 'kept here'"
    );
    assert_eq!(
        of_first(&new(Some("/ci/pending/a@cpu.snap.new"))).unwrap(),
        "cargo memcheck review a@cpu.snap --from DIR --baselines 'kept here'"
    );
    assert_eq!(of_first(&new(None)).unwrap(), "cargo memcheck explain missing-baseline");
    let accepts = |outcome: &TestOutcome| {
        all(&task(), outcome).iter().any(|step| matches!(step, NextStep::Accept(_)))
    };
    assert!(accepts(&new(NEXT_TO_BASELINE)) && !accepts(&new(None)));
    let mut of_law = new(None);
    of_law.across.pending = Some("/w/snapshots/a.law@cpu.snap.new".into());
    assert!(accepts(&of_law));
}
