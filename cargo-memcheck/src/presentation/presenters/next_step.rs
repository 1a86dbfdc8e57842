//! The commands that a person runs next, for all forms of output.

use memcheck_core::judgement::finding::{Class, Code, Finding};
use memcheck_core::judgement::verdict::{Status, Verdict};
use memcheck_core::runs::process_end;

use super::findings::folded;
use crate::discovery::task::{Task, TestOutcome, TestSubject};
use crate::invocation::printed::PrintedCommand;

/// What a command does for a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NextStep {
    /// Runs the test.
    Run,
    /// Runs it with its output.
    ShowOutput,
    /// Runs it with its output and the backtrace of its panic.
    ShowBacktrace,
    /// Runs it as often as a figure that differs needs.
    Repeat,
    /// Shows the call sites.
    Profile,
    /// Shows the memory of the test until it ends.
    Watch,
    /// Checks the devices.
    Doctor,
    /// Shows the pending snapshots.
    Review(Snapshots),
    /// Makes them the baselines.
    Accept(Snapshots),
    /// Explains a finding or a cause.
    Explain(String),
}

/// The pending snapshots of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshots {
    names: Vec<String>,
    /// In a folder that CI uploads, so that a person has it elsewhere.
    elsewhere: bool,
}

/// A command has at most so many names of snapshots.
#[cfg(feature = "exports")]
const MOST_NAMES: usize = 8;

impl Snapshots {
    /// `None` if the test has no pending snapshot.
    fn of(outcome: &TestOutcome) -> Option<Self> {
        let report = outcome.report.as_ref();
        let own = report.and_then(|report| Some((report.pending.as_ref()?, &report.snapshot)));
        let across = &outcome.across;
        let of_law = across.pending.as_ref().map(|pending| (pending, &across.snapshot));
        let all: Vec<_> = own.into_iter().chain(of_law).collect();
        let elsewhere = all.iter().any(|(pending, snapshot)| {
            snapshot.as_ref().is_some_and(|snapshot| snapshot.parent() != pending.parent())
        });
        let name = |pending: &std::path::Path| {
            let name = pending.file_name()?.to_string_lossy().into_owned();
            Some(name.strip_suffix(".new").map_or(name.clone(), str::to_owned))
        };
        let names: Vec<String> = all.iter().filter_map(|(pending, _)| name(pending)).collect();
        (!names.is_empty()).then_some(Self { names, elsewhere })
    }

    /// The snapshots of several tests; `None` if there are none.
    #[cfg(feature = "exports")]
    pub(super) fn joined(all: &[Self]) -> Option<Self> {
        let names: Vec<String> = all.iter().flat_map(|it| it.names.iter().cloned()).collect();
        // The command without names is about all pending snapshots.
        let names = if names.len() > MOST_NAMES { Vec::new() } else { names };
        let elsewhere = all.iter().any(|it| it.elsewhere);
        (!all.is_empty()).then_some(Self { names, elsewhere })
    }

    /// The command that shows them.
    pub(super) fn review(&self, baselines: &[String]) -> String {
        let command = match self.elsewhere {
            true => PrintedCommand::ReviewFetchedSnapshots,
            false => PrintedCommand::ReviewSnapshots,
        };
        command.of_snapshots(&self.names, self.flags(baselines))
    }

    fn flags(&self, baselines: &[String]) -> Vec<String> {
        let from = ["--from", "DIR"].map(str::to_owned);
        from.into_iter().filter(|_| self.elsewhere).chain(baselines.iter().cloned()).collect()
    }
}

impl NextStep {
    /// True if the step runs the test as it is, so that it also shows if a change has helped.
    fn runs(&self) -> bool {
        matches!(self, Self::Run | Self::ShowOutput | Self::ShowBacktrace | Self::Repeat)
    }

    /// The command, ready for a shell. `baselines` is the flag of the folder of the baselines.
    pub(super) fn command(&self, task: &Task, baselines: &[String]) -> String {
        match self {
            Self::Run => of_test(PrintedCommand::RunTest, task, &[]),
            Self::ShowOutput => of_test(PrintedCommand::RunTestWithOutput, task, &["--no-capture"]),
            Self::ShowBacktrace => {
                format!("RUST_BACKTRACE=1 {}", Self::ShowOutput.command(task, baselines))
            }
            Self::Repeat => of_test(PrintedCommand::RepeatTest, task, &["--repeat", "30"]),
            Self::Profile => of_test(PrintedCommand::ProfileTest, task, &[]),
            Self::Watch => of_test(PrintedCommand::ProfileTest, task, &["--live"]),
            Self::Doctor => PrintedCommand::CheckDevice.with(devices(task)),
            Self::Review(snapshots) => snapshots.review(baselines),
            Self::Accept(snapshots) => {
                let command = match snapshots.elsewhere {
                    true => PrintedCommand::AcceptFetchedSnapshots,
                    false => PrintedCommand::AcceptSnapshots,
                };
                command.of_snapshots(&snapshots.names, snapshots.flags(baselines))
            }
            Self::Explain(code) => PrintedCommand::Explain.with([code]),
        }
    }
}

/// The flags select one test: two targets can have tests of one name, and `--exact` makes a filter
/// match nothing else. An ignored test does not run without its flag. With `--bin`, `profile` would run
/// the program, and no flag of `run` names a benchmark.
fn of_test(command: PrintedCommand, task: &Task, more: &[&str]) -> String {
    let runs = command != PrintedCommand::ProfileTest;
    let mut words = vec!["-p", &task.package];
    match task.binary.id.rsplit_once("::").map(|(_, target)| target) {
        None => words.push("--lib"),
        Some(target) => match target.split_once('/') {
            Some(("bin", name)) if runs => words.extend(["--bin", name]),
            Some(("example", name)) if runs => words.extend(["--example", name]),
            Some(("bin" | "example" | "bench", _)) => {}
            _ => words.extend(["--test", target]),
        },
    }
    words.extend([task.name(), "--exact"]);
    if task.subject.test().is_some_and(|entry| entry.ignored) {
        words.extend(["--run-ignored", "all"]);
    }
    words.extend(more);
    let devices = devices(task);
    command.with(words.into_iter().chain(devices.iter().map(String::as_str)))
}

fn devices(task: &Task) -> Vec<String> {
    let requests = task.leg.requests().into_iter();
    requests.flat_map(|request| ["--device".to_owned(), request.to_string()]).collect()
}

/// The finding that decides the first step: a measured one if there is any.
fn gravest(verdict: &Verdict) -> Option<Code> {
    let codes = || verdict.findings.iter().map(|finding| finding.code);
    let denied = || codes().filter(|code| verdict.denied.contains(code));
    codes().find(|code| code.row().class != Class::Bookkeeping).or_else(|| denied().next())
}

/// The first of [`all`].
pub(super) fn first(task: &Task, outcome: &TestOutcome) -> Option<NextStep> {
    all(task, outcome).into_iter().next()
}

/// All steps that help with this outcome, the most helpful first. Empty for a program.
pub(super) fn all(task: &Task, outcome: &TestOutcome) -> Vec<NextStep> {
    let verdict = &outcome.verdict;
    if matches!(task.subject, TestSubject::Program { .. }) {
        return Vec::new();
    }
    let (snapshots, gravest) = (Snapshots::of(outcome), gravest(verdict));
    let mut steps = vec![match verdict.status {
        Status::Ignored => return vec![NextStep::Run],
        Status::Passed => NextStep::Profile,
        Status::Failed | Status::NotMeasured | Status::NeedsReview => {
            gravest.map_or(NextStep::Run, |code| of_code(code, outcome, snapshots.as_ref()))
        }
    }];
    let has_sites = verdict.findings.iter().any(|finding| finding.code.is_about_memory());
    steps.extend(has_sites.then_some(NextStep::Profile));
    steps.extend(snapshots.map(NextStep::Accept));
    // Only a test that has failed is run again, unless the first step does it.
    let has_failed = gravest.is_some_and(|code| code.row().class != Class::Bookkeeping);
    steps.extend((has_failed && !steps[0].runs()).then_some(NextStep::Run));
    let findings = folded(&verdict.findings);
    let explained = findings.iter().find_map(|folded| explained(folded.finding));
    steps.extend(explained.map(NextStep::Explain));
    let is_profile = |step: &NextStep| matches!(step, NextStep::Profile | NextStep::Watch);
    let is_done = |step: &NextStep| outcome.is_profiled && is_profile(step);
    let mut distinct: Vec<NextStep> = Vec::new();
    for step in steps {
        if !distinct.contains(&step) && !is_done(&step) {
            distinct.push(step);
        }
    }
    distinct
}

/// The step that helps most with a code.
fn of_code(code: Code, outcome: &TestOutcome, snapshots: Option<&Snapshots>) -> NextStep {
    match code {
        Code::Unstable => NextStep::Repeat,
        Code::Scaling => NextStep::Explain(code.to_string()),
        code if code.is_about_memory() => NextStep::Profile,
        Code::TestFailed if lacks_backtrace(outcome) => NextStep::ShowBacktrace,
        Code::Crashed => after_crash(outcome),
        Code::TestFailed | Code::TimedOut | Code::DeviceFault => NextStep::ShowOutput,
        Code::NotMeasured if outcome.was_killed => NextStep::Run,
        // The process ended without a record, of which its output can have the reason.
        Code::NotMeasured if outcome.report.is_none() => NextStep::ShowOutput,
        Code::NotMeasured | Code::NoDevice => NextStep::Doctor,
        other => match snapshots {
            Some(snapshots) => NextStep::Review(snapshots.clone()),
            None => NextStep::Explain(other.to_string()),
        },
    }
}

/// The advice to accept the new figures of a test, and its command; `None` if no snapshot is pending.
/// A missing baseline alone needs no advice for each test, because all tests of a first run lack one.
pub(super) fn acceptance(
    task: &Task,
    outcome: &TestOutcome,
    baselines: &[String],
) -> Option<(&'static str, String)> {
    let is_new = |finding: &Finding| finding.code == Code::MissingBaseline;
    let step = NextStep::Accept(Snapshots::of(outcome)?);
    let advised = !outcome.verdict.findings.iter().all(is_new);
    advised.then(|| ("if the new figures are intended:", step.command(task, baselines)))
}

/// A process that was killed mostly had no memory left, which a view of its memory shows. The output
/// of another one has its cause, if it is whole and in its order, and has the backtrace of a panic.
fn after_crash(outcome: &TestOutcome) -> NextStep {
    let is = |of: fn(&Finding) -> bool| outcome.verdict.findings.iter().any(of);
    match () {
        () if is(process_end::can_lack_memory) => NextStep::Watch,
        // Neither a view of its memory nor a backtrace shows who has sent the signal.
        () if is(process_end::is_killed) => NextStep::ShowOutput,
        () => NextStep::ShowBacktrace,
    }
}

/// The output has a panic for which std offers a backtrace.
fn lacks_backtrace(outcome: &TestOutcome) -> bool {
    let offers = |line: &&str| line.contains("run with `RUST_BACKTRACE=1`");
    outcome.output.own_lines().iter().any(offers)
}

/// The cause explains more than the finding.
fn explained(finding: &Finding) -> Option<String> {
    let is_new = finding.code == Code::MissingBaseline;
    let code = finding.cause.as_ref().map(|cause| cause.code.clone());
    (!is_new).then(|| code.unwrap_or_else(|| finding.code.to_string()))
}

/// The first step and the advice to accept, as lines of plain text below the findings of a test.
pub(super) fn lines(task: &Task, outcome: &TestOutcome, baselines: &[String]) -> Vec<String> {
    let next = first(task, outcome).map(|step| format!("next: {}", step.command(task, baselines)));
    let accepted = acceptance(task, outcome, baselines);
    let accepted = accepted.map(|(when, command)| format!("{when} {command}"));
    next.into_iter().chain(accepted).collect()
}

/// The codes of the findings that fail the test.
pub(super) fn codes(verdict: &Verdict) -> String {
    let mut names: Vec<&str> = Vec::new();
    let all = folded(&verdict.findings);
    for finding in
        all.iter().flat_map(|it| std::iter::once(it.finding).chain(it.consequences.iter().copied()))
    {
        let fails = finding.code.row().class != Class::Bookkeeping
            || verdict.denied.contains(&finding.code);
        if fails && !names.contains(&finding.code.name()) {
            names.push(finding.code.name());
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use memcheck_core::device::Family;
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
        let command =
            |outcome: &TestOutcome| first(&task(), outcome).unwrap().command(&task(), &[]);
        assert_eq!(
            first(&task(), &panicked),
            Some(NextStep::ShowOutput),
            "an error has no backtrace"
        );
        panicked.output.stderr =
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"
                .to_owned();
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
        assert_eq!(of(MOST_NAMES + 1, false).unwrap(), "cargo memcheck review");
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
}
