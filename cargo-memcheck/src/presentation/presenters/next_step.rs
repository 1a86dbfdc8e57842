//! The commands that a person runs next, for all forms of output.

mod snapshots;

use memcheck_core::judgement::diagnosis::Cause;
use memcheck_core::judgement::finding::{Class, Code, Finding};
use memcheck_core::judgement::verdict::{Status, Verdict};
use memcheck_core::runs::process_end;

use super::findings::folded;
use crate::discovery::task::{Task, TestOutcome, TestSubject};
use crate::invocation::printed::PrintedCommand;

pub(super) use snapshots::Snapshots;

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
    // The remedy of a known cause is the next step, and then the test shows if it has helped.
    if steps[0] == NextStep::Profile && has_remedy(verdict) {
        steps.insert(0, NextStep::Run);
    }
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

/// True if the test leaks and its remedy is known.
fn has_remedy(verdict: &Verdict) -> bool {
    verdict.findings.iter().any(|finding| {
        let cause = finding.cause.as_ref();
        finding.code == Code::Leak && cause.is_some_and(Cause::has_certain_remedy)
    })
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
    Some((INTENDED, NextStep::Accept(accepted(outcome)?).command(task, baselines)))
}

const INTENDED: &str = "if the new figures are intended:";

/// The snapshots that a text advises to accept.
fn accepted(outcome: &TestOutcome) -> Option<Snapshots> {
    let is_new = |finding: &Finding| finding.code == Code::MissingBaseline;
    let snapshots = Snapshots::of(outcome)?;
    (!outcome.verdict.findings.iter().all(is_new)).then_some(snapshots)
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

/// The steps that a text names below the findings of a test, in their order, each with the words before
/// its command. The further ones of [`all`] are for reports with more room.
pub(super) fn advised(task: &Task, outcome: &TestOutcome) -> Vec<(&'static str, NextStep)> {
    let mut steps = all(task, outcome).into_iter();
    let accept = accepted(outcome).map(NextStep::Accept);
    let first = steps.next();
    match (first, accept) {
        (Some(NextStep::Run), accept) if has_remedy(&outcome.verdict) => {
            let profile = steps.find(|step| *step == NextStep::Profile);
            let profile = profile.map(|step| ("for all call sites:", step));
            let run = ("after the fix:", NextStep::Run);
            let accept = accept.map(|step| (INTENDED, step));
            std::iter::once(run).chain(profile).chain(accept).collect()
        }
        (Some(NextStep::Profile), Some(accept)) => {
            vec![(INTENDED, accept), ("if not:", NextStep::Profile)]
        }
        (first, accept) => {
            let first = first.map(|step| ("next:", step));
            first.into_iter().chain(accept.map(|step| (INTENDED, step))).collect()
        }
    }
}

/// The steps of [`advised`] as lines of plain text.
pub(super) fn lines(task: &Task, outcome: &TestOutcome, baselines: &[String]) -> Vec<String> {
    let steps = advised(task, outcome).into_iter();
    steps.map(|(when, step)| format!("{when} {}", step.command(task, baselines))).collect()
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
mod tests;
