//! The lines of the program behind a finding: the one at which the test ended or that keeps the memory,
//! and those that called it. The frames that a message or an output has as text are taken from there.

use std::path::Path;

use console::strip_ansi_codes;
use memcheck_core::judgement::finding::{Code, Finding, HeadLine};
use memcheck_core::judgement::headline;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::presentation::text::{CALLED, LINE_OF_ITERATIONS, LINE_OF_TEST};

use crate::discovery::task::TestOutcome;
use crate::presentation::presenters::panics::{self, PanicLine, PanicPlace};

/// Which lines of source show a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those before and after its line.
    Around,
    /// The line and those below it: the body of a loop that begins at the line.
    Below,
}

/// A finding without the frames in its message.
#[derive(Debug)]
pub(super) struct Ending {
    /// The words before the line.
    pub(super) title: &'static str,
    /// True if [`Self::at`] is only the line of the test, because the place is not known.
    pub(super) is_test: bool,
    /// The line of a panic, an error or a crash or, of kept memory, the one that called those that allocate it.
    /// A line of a dependency is not a place to look at.
    pub(super) at: Option<HeadLine>,
    /// The lines of source that show it: of the line that iterates, the body below it.
    pub(super) extent: Extent,
    /// The lines that called it, the innermost first.
    pub(super) callers: Vec<HeadLine>,
    /// The lines of the message after the first: of an assertion, its two values.
    pub(super) further: Vec<String>,
    /// The last line of the output, if the process ended without a panic: it mostly has the reason.
    pub(super) last_output: Option<String>,
}

impl Ending {
    pub(super) fn new(finding: &Finding, outcome: &TestOutcome) -> Self {
        let (mut frames, further) = frames(finding.message.lines().skip(1).map(str::to_owned));
        let output = failed_output(outcome).unwrap_or_default();
        let panic = panics::place(&output).filter(|_| finding.code == Code::TestFailed);
        let (at, callers): (Option<HeadLine>, Vec<HeadLine>) = match (finding.code, panic) {
            (_, Some(PanicPlace { line, callers })) => {
                (Some(of_panic(line)), callers.into_iter().map(of_panic).collect())
            }
            (Code::TestFailed, None) if !frames.is_empty() => (Some(frames.remove(0)), frames),
            (Code::Crashed | Code::TimedOut, None) => (finding.stopped_at().cloned(), frames),
            _ => (finding.caller().cloned(), headline::callers(finding)),
        };
        // Without the line of the end, the line of its test takes its place.
        let has_none = finding.stopped_at().is_some_and(|at| at.function.is_none());
        let is_test = has_none && !finding.iterates;
        let title = match finding.caller() {
            Some(_) => CALLED.trim_end(),
            None if is_test => LINE_OF_TEST,
            None if finding.iterates => LINE_OF_ITERATIONS,
            None => "line",
        };
        let is_inside = |at: &HeadLine| Path::new(&at.file).is_relative();
        Self {
            title,
            is_test,
            at: at.filter(is_inside),
            extent: if finding.iterates { Extent::Below } else { Extent::Around },
            callers: callers.into_iter().filter(is_inside).collect(),
            further,
            last_output: ends_without_panic(finding.code).then(|| lines(outcome).pop()).flatten(),
        }
    }
}

fn of_panic(PanicLine { file, line, function }: PanicLine) -> HeadLine {
    HeadLine { file, line, function }
}

/// What a failed test and its harness printed, without colors.
pub(in crate::presentation::presenters::exports) fn failed_output(
    outcome: &TestOutcome,
) -> Option<Vec<String>> {
    let failed = matches!(outcome.verdict.status, Status::Failed | Status::NotMeasured);
    let lines = outcome.output.own_lines();
    (failed && !lines.is_empty())
        .then(|| lines.into_iter().map(|line| strip_ansi_codes(line).into_owned()).collect())
}

/// The output of a failed test, without the lines that its findings have.
pub(super) fn output(outcome: &TestOutcome) -> Vec<String> {
    let lines = lines(outcome);
    let has_last = || outcome.verdict.findings.iter().any(|it| ends_without_panic(it.code));
    if lines.len() == 1 && has_last() { Vec::new() } else { lines }
}

/// The same with the last line.
fn lines(outcome: &TestOutcome) -> Vec<String> {
    let output = failed_output(outcome).unwrap_or_default();
    panics::without_repeats(&output, &outcome.verdict.findings)
}

fn ends_without_panic(code: Code) -> bool {
    code.cut_it_short() && code != Code::TestFailed
}

/// The frames among lines, such as `called from src/a.rs:7 (app::step)`, and the other lines.
fn frames(lines: impl IntoIterator<Item = String>) -> (Vec<HeadLine>, Vec<String>) {
    let (mut frames, mut others) = (Vec::new(), Vec::new());
    for line in lines {
        match frame(&line) {
            Some(frame) => frames.push(frame),
            None => others.push(line),
        }
    }
    (frames, others)
}

fn frame(line: &str) -> Option<HeadLine> {
    panics::frame(line).map(of_panic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presentation::presenters::example::leaky;

    fn places(all: &[HeadLine]) -> Vec<String> {
        all.iter().map(|at| format!("{}:{}", at.file, at.line)).collect()
    }

    #[test]
    fn a_panic_has_its_callers_and_its_output_does_not() {
        let mut outcome = leaky();
        let finding = Finding::new(Code::TestFailed, "the body panicked: why\n  left: 1");
        outcome.verdict.findings = vec![finding.clone()];
        outcome.output.stderr = "begin\nthread 'a' panicked at a.rs:2:5:\nwhy\nstack backtrace:\n   \
                                 0: app::a\n      at ./a.rs:2:5\n   1: app::b\n      at ./a.rs:9:1\n"
            .to_owned();
        let ending = Ending::new(&finding, &outcome);
        assert_eq!(places(&ending.at.into_iter().collect::<Vec<_>>()), ["a.rs:2"]);
        assert_eq!(places(&ending.callers), ["a.rs:9"]);
        assert_eq!((ending.further.join(""), ending.last_output), ("  left: 1".to_owned(), None));
        assert_eq!(output(&outcome), ["begin"]);
    }

    #[test]
    fn an_error_and_a_crash_have_the_frames_of_their_messages() {
        let mut outcome = leaky();
        let message = "the body failed: why\n   at a.rs:2 (app::a)\n   at a.rs:9 (app::b)";
        let failed = Finding::new(Code::TestFailed, message);
        let ending = Ending::new(&failed, &outcome);
        assert_eq!(places(&ending.at.into_iter().collect::<Vec<_>>()), ["a.rs:2"]);
        assert_eq!(places(&ending.callers), ["a.rs:9"]);
        let message = "SIGABRT\ncalled from a.rs:9 (app::b)\ncalled from /usr/c.rs:1 (c)";
        let at = HeadLine { file: "a.rs".to_owned(), line: 2, function: None };
        let crash = Finding { keeps_at: Some(at), ..Finding::new(Code::Crashed, message) };
        outcome.verdict.findings = vec![crash.clone()];
        outcome.output.stderr = "first\nat last (it said)".to_owned();
        let ending = Ending::new(&crash, &outcome);
        assert_eq!(places(&ending.callers), ["a.rs:9"], "not the line of a library");
        assert_eq!(ending.last_output.as_deref(), Some("at last (it said)"));
        assert_eq!(output(&outcome).len(), 2);
        outcome.output.stderr = "one line".to_owned();
        assert_eq!(Ending::new(&crash, &outcome).last_output.as_deref(), Some("one line"));
        assert!(output(&outcome).is_empty(), "it is shown with the crash");
    }

    #[test]
    fn a_leak_has_no_end() {
        let outcome = leaky();
        let ending = Ending::new(&outcome.verdict.findings[0], &outcome);
        assert!(ending.at.is_none() && ending.last_output.is_none(), "{ending:?}");
    }
}
