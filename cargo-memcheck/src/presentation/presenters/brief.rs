//! The shortest form of a failure, for lists of failures: its line and its cause.

use std::path::{Path, PathBuf};

use memcheck_core::judgement::finding::{Class, Code, Finding};
use memcheck_core::presentation::text::{LINE_OF_ITERATIONS, LINE_OF_TEST};

use super::kinds::FailureKind;
use super::places::FindingPlaces;
use super::{findings, panics, places};
use crate::discovery::task::{Task, TestOutcome};

/// The line of the program and the cause of a failure. A test that only lacks a baseline has neither.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Brief {
    pub(super) at: Option<(String, u32)>,
    /// What that line is, if the failure names no line of the program: that of the test, or the one that
    /// iterates.
    pub(super) mark: Option<&'static str>,
    pub(super) cause: Option<String>,
    pub(super) kind: FailureKind,
    /// What to change, if the cause is certain.
    pub(super) fix: Option<String>,
}

impl Brief {
    /// That of the first finding that a report shows and that fails the test.
    pub(super) fn of(task: &Task, outcome: &TestOutcome, places: &FindingPlaces) -> Self {
        let findings = findings::folded(&outcome.verdict.findings);
        let is_failure = |finding: &&Finding| finding.code.row().class != Class::Bookkeeping;
        let Some(finding) = findings.iter().map(|it| it.finding).find(is_failure) else {
            return Self::default();
        };
        let (own, cause) = (line_of(finding, outcome), Some(cause_of(finding)));
        let of_test = || {
            let file = places.relative(task.subject.file());
            let file = file.to_str().filter(|_| file.is_relative())?;
            Some((file.to_owned(), task.subject.line()))
        };
        // The line of a crash without a function is that of its test, unless it iterates there.
        let is_known = own.is_some()
            && (finding.iterates || finding.stopped_at().is_none_or(|at| at.function.is_some()));
        let kind = FailureKind::of(finding.code);
        let certain = finding.cause.as_ref().filter(|cause| cause.has_certain_remedy());
        let fix = certain.map(|cause| cause.remedy.clone());
        let fix = fix.or_else(|| finding.reason().map(|rise| rise.remedy));
        let mark = match is_known {
            true => finding.iterates.then_some(LINE_OF_ITERATIONS),
            false => Some(LINE_OF_TEST),
        };
        Self { mark, at: own.or_else(of_test), cause, kind, fix }
    }
}

/// The line of the workspace where a form that shows findings in the source has this one: the line to
/// look at or, without one, a line that the finding names, or that of its test.
pub(super) fn place(
    task: &Task,
    outcome: &TestOutcome,
    finding: &Finding,
    places: &FindingPlaces,
) -> (PathBuf, u32) {
    let own = line_of(finding, outcome);
    let own = own.map(|(file, line)| (places.relative(Path::new(&file)), line));
    own.unwrap_or_else(|| places.of_finding(task, finding))
}

/// The line to look at: that which keeps the memory of a leak, if it is known.
fn line_of(finding: &Finding, outcome: &TestOutcome) -> Option<(String, u32)> {
    kept_through(finding).or_else(|| first_line(finding, outcome))
}

/// The lines whose text a report shows.
pub(super) fn lines_with_source(
    finding: &Finding,
    outcome: &TestOutcome,
) -> impl Iterator<Item = (String, u32)> {
    kept_through(finding).into_iter().chain(first_line(finding, outcome))
}

/// The line that keeps the memory.
pub(super) fn kept_through(finding: &Finding) -> Option<(String, u32)> {
    let at = finding.kept_through.as_ref()?;
    Path::new(&at.file).is_relative().then(|| (at.file.clone(), at.line))
}

/// The first line of a finding: of a panic or an error, its innermost line of the program. A line of a
/// dependency is not a place to look at.
fn first_line(finding: &Finding, outcome: &TestOutcome) -> Option<(String, u32)> {
    let of_failure = || {
        let panic = panics::place(&outcome.output.own_lines()).map(|place| place.line);
        let at = panic.or_else(|| panics::frames(&finding.message).into_iter().next())?;
        Some((at.file, at.line))
    };
    let of_headline = || places::headline(finding).map(|(file, line)| (file.to_owned(), line));
    let at = match finding.code {
        Code::TestFailed => of_failure().or_else(of_headline),
        _ => of_headline(),
    };
    at.filter(|(file, _)| Path::new(file).is_relative())
}

/// The cause or, without one, the first line of the message.
fn cause_of(finding: &Finding) -> String {
    let known = finding.cause.as_ref().map(|cause| format!("{} ({})", cause.title, cause.code));
    let risen = || finding.reason().map(|rise| rise.cause);
    let message = || finding.message.lines().next().unwrap_or_default().to_owned();
    known.or_else(risen).unwrap_or_else(message)
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::finding::{GrownHolder, HeadLine};

    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    fn brief(finding: Finding, stderr: &str) -> (String, String) {
        let mut outcome = leaky();
        outcome.output.stderr = stderr.to_owned();
        outcome.verdict.findings = vec![Finding::new(Code::MissingBaseline, "new"), finding];
        let Brief { at, mark, cause, .. } = of(&outcome);
        let at =
            at.filter(|_| mark != Some(LINE_OF_TEST)).map(|(file, line)| format!("{file}:{line}"));
        (at.unwrap_or_default(), cause.unwrap_or_default())
    }

    fn of(outcome: &TestOutcome) -> Brief {
        Brief::of(&task(), outcome, &FindingPlaces::new("/w".into()))
    }

    #[test]
    fn every_kind_of_failure_has_its_line_and_its_cause() {
        let leak = of(&leaky());
        assert_eq!(leak.at, Some(("src/model.rs".to_owned(), 20)));
        let graph = "a kept tensor holds the graph that computed it (graph-kept)";
        assert_eq!(leak.cause.as_deref(), Some(graph));
        assert!(leak.fix.is_some_and(|fix| fix.contains("`detach()`")));
        let mut kept = leaky();
        let line = HeadLine { file: "src/train.rs".to_owned(), line: 7, function: None };
        kept.verdict.findings[0].kept_through = Some(line);
        assert_eq!(of(&kept).at, Some(("src/train.rs".to_owned(), 7)), "the line to change");
        let places = FindingPlaces::new("/w".into());
        let place = place(&task(), &kept, &kept.verdict.findings[0], &places);
        assert_eq!(place, ("src/train.rs".into(), 7));
        let failed = |message: &str| Finding::new(Code::TestFailed, message);
        let panic = "thread 'a' (1) panicked at tests/mem.rs:20:5:\nwhy\n";
        let expected = ("tests/mem.rs:20".to_owned(), "the body panicked: why".to_owned());
        assert_eq!(brief(failed("the body panicked: why\n  left: 1"), panic), expected);
        let error = failed("the body failed: why\n   at a.rs:2 (app::a)\n   at a.rs:9 (app::b)");
        assert_eq!(brief(error, ""), ("a.rs:2".to_owned(), "the body failed: why".to_owned()));
        let function = Some("app::f".to_owned());
        let at = HeadLine { file: "a.rs".to_owned(), line: 7, function };
        let crash = Finding { keeps_at: Some(at), ..Finding::new(Code::Crashed, "SIGABRT") };
        assert_eq!(brief(crash, panic), ("a.rs:7".to_owned(), "SIGABRT".to_owned()));
        let grown = GrownHolder {
            holder: "randn [8] f32".to_owned(),
            place: Some("src/b.rs:34".to_owned()),
            now: 8,
            ..GrownHolder::default()
        };
        let peak = Finding { grown: vec![grown], ..Finding::new(Code::PeakRegression, "higher") };
        let (line, cause) = brief(peak, "");
        assert_eq!(line, "src/b.rs:34");
        assert_eq!(cause, "`randn` at src/b.rs:34 is new at the peak (+8 B)");
    }

    #[test]
    fn a_test_that_only_lacks_a_baseline_and_a_line_of_a_dependency_have_none() {
        let mut outcome = leaky();
        outcome.verdict.findings = vec![Finding::new(Code::MissingBaseline, "new")];
        assert_eq!(of(&outcome), Brief::default());
        outcome.verdict.findings = vec![Finding::new(Code::TestFailed, "the body failed")];
        let line = (task().subject.file().to_str().unwrap().to_owned(), task().subject.line());
        assert_eq!((of(&outcome).at, of(&outcome).mark), (Some(line), Some(LINE_OF_TEST)));
        let at = HeadLine { file: "a.rs".to_owned(), line: 7, function: None };
        let crash = Finding { keeps_at: Some(at), ..Finding::new(Code::Crashed, "SIGABRT") };
        assert_eq!(brief(crash.clone(), "").0, "", "only the line of the test is known");
        let iterating = Finding { iterates: true, ..crash };
        outcome.verdict.findings = vec![iterating.clone()];
        assert_eq!(of(&outcome).mark, Some(LINE_OF_ITERATIONS));
        assert_eq!(brief(iterating, "").0, "a.rs:7", "the line that iterates");
        let at = HeadLine { file: "/registry/a.rs".to_owned(), line: 7, function: None };
        let leak = Finding { keeps_at: Some(at), ..Finding::new(Code::Leak, "grows") };
        assert_eq!(brief(leak, ""), (String::new(), "grows".to_owned()));
    }
}
