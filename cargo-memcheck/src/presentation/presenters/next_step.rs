//! The commands that a person runs next, for all forms of output.

use memcheck_core::judgement::finding::{Class, Code, Finding};
use memcheck_core::judgement::verdict::{Status, Verdict};

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

    fn flags(&self, baselines: &[String]) -> Vec<String> {
        let from = ["--from", "DIR"].map(str::to_owned);
        from.into_iter().filter(|_| self.elsewhere).chain(baselines.iter().cloned()).collect()
    }
}

impl NextStep {
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
            Self::Doctor => PrintedCommand::CheckDevice.with(devices(task)),
            Self::Review(snapshots) => {
                let command = match snapshots.elsewhere {
                    true => PrintedCommand::ReviewFetchedSnapshots,
                    false => PrintedCommand::ReviewSnapshots,
                };
                command.of_snapshots(&snapshots.names, snapshots.flags(baselines))
            }
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

/// The finding that decides the next step: a measured one if there is any.
fn gravest(verdict: &Verdict) -> Option<Code> {
    let codes = || verdict.findings.iter().map(|finding| finding.code);
    let denied = || codes().filter(|code| verdict.denied.contains(code));
    codes().find(|code| code.row().class != Class::Bookkeeping).or_else(|| denied().next())
}

/// The step that helps most; `None` if the test needs none.
pub(super) fn first(task: &Task, outcome: &TestOutcome) -> Option<NextStep> {
    if matches!(task.subject, TestSubject::Program { .. }) {
        return None;
    }
    let code = gravest(&outcome.verdict)?;
    Some(match code {
        Code::Unstable => NextStep::Repeat,
        Code::Scaling => NextStep::Explain(code.to_string()),
        code if code.is_about_memory() => NextStep::Profile,
        Code::TestFailed if lacks_backtrace(outcome) => NextStep::ShowBacktrace,
        Code::Crashed => after_crash(outcome),
        Code::TestFailed | Code::TimedOut | Code::DeviceFault => NextStep::ShowOutput,
        Code::NotMeasured if outcome.was_killed => NextStep::Run,
        Code::NotMeasured | Code::NoDevice => NextStep::Doctor,
        other => match Snapshots::of(outcome) {
            Some(snapshots) => NextStep::Review(snapshots),
            None => NextStep::Explain(other.to_string()),
        },
    })
}

/// All steps that help with this outcome, in the order of a person's work.
pub(super) fn all(task: &Task, outcome: &TestOutcome) -> Vec<NextStep> {
    let verdict = &outcome.verdict;
    let mut steps = Vec::new();
    if matches!(task.subject, TestSubject::Program { .. }) {
        return steps;
    }
    if verdict.status != Status::Passed {
        steps.push(match gravest(verdict) {
            Some(Code::TestFailed) if lacks_backtrace(outcome) => NextStep::ShowBacktrace,
            Some(Code::Crashed) => after_crash(outcome),
            Some(Code::TimedOut | Code::DeviceFault) => NextStep::ShowOutput,
            _ => NextStep::Run,
        });
    }
    if verdict.status == Status::Ignored {
        return steps;
    }
    let is_about_memory = |finding: &Finding| finding.code.is_about_memory();
    if verdict.status == Status::Passed || verdict.findings.iter().any(is_about_memory) {
        steps.push(NextStep::Profile);
    }
    steps.extend(Snapshots::of(outcome).map(NextStep::Accept));
    let findings = folded(&verdict.findings);
    let explained = findings.iter().find_map(|folded| explained(folded.finding));
    steps.extend(explained.map(NextStep::Explain));
    steps
}

/// All output of a process that crashed is shown already, unless it was too long to keep.
fn after_crash(outcome: &TestOutcome) -> NextStep {
    if outcome.output.is_cut {
        NextStep::ShowOutput
    } else if lacks_backtrace(outcome) {
        NextStep::ShowBacktrace
    } else {
        NextStep::Run
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
    use memcheck_core::judgement::finding::TABLE;

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
        let command = |outcome: &TestOutcome| {
            let steps = [first(&task(), outcome), all(&task(), outcome).into_iter().next()];
            let [first, of_page] = steps.map(|step| step.unwrap().command(&task(), &[]));
            (first, of_page)
        };
        assert_eq!(
            first(&task(), &panicked),
            Some(NextStep::ShowOutput),
            "an error has no backtrace"
        );
        panicked.output.stderr =
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"
                .to_owned();
        let (of_terminal, of_page) = command(&panicked);
        let own = "cargo memcheck run -p app --test mem a::b --exact";
        assert_eq!(of_terminal, format!("RUST_BACKTRACE=1 {own} --no-capture --device cpu"));
        assert_eq!(of_page, of_terminal);
        let (of_terminal, of_page) = command(&TestOutcome::killed(None));
        assert_eq!(of_terminal, format!("{own} --device cpu"));
        assert_eq!(of_page, of_terminal);
        let unmeasured = outcome(&[Code::NotMeasured], None);
        assert_eq!(first(&task(), &unmeasured), Some(NextStep::Doctor));
    }

    #[test]
    fn a_crash_is_run_with_its_output_only_if_that_was_cut() {
        let mut crashed = outcome(&[Code::Crashed], None);
        let step = |outcome: &TestOutcome| {
            let first = first(&task(), outcome).unwrap();
            assert_eq!(all(&task(), outcome)[0], first);
            first
        };
        assert_eq!(step(&crashed), NextStep::Run);
        crashed.output.stderr = "note: run with `RUST_BACKTRACE=1` environment".to_owned();
        assert_eq!(step(&crashed), NextStep::ShowBacktrace);
        crashed.output.is_cut = true;
        assert_eq!(step(&crashed), NextStep::ShowOutput);
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
                            assert_eq!(refusal(&command), None);
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
        let allowed = outcome(&[Code::Improved], None);
        assert_eq!((of_first(&allowed), codes(&allowed.verdict)), (None, String::new()));
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
