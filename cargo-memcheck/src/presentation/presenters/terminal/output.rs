//! The output of a failed test: the line of its panic, and the printed lines below the findings.

use memcheck_core::presentation::text::{Line, LinePart};

use crate::discovery::task::TestOutcome;
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::{panics, style};
use crate::system::escape;

const HEAD: usize = 4;
const TAIL: usize = 6;

/// All of the output, or only the lines that help most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputExtent {
    Whole,
    Shortened,
}

impl OutputExtent {
    /// With a live view the output is not printed as it comes.
    pub(super) fn new(verbosity: Verbosity, is_live: bool) -> Self {
        if is_live || verbosity == Verbosity::Verbose { Self::Whole } else { Self::Shortened }
    }
}

/// Adds the line of a panic below the message, and the lines that called it.
pub(super) fn add_place(parts: &mut Vec<Line>, outcome: &TestOutcome) {
    let Some(panic) = panics::place(&outcome.output.own_lines()) else { return };
    let of_message = |line: &&Line| matches!(line.part, LinePart::Summary | LinePart::Message);
    let at = parts.iter().take_while(of_message).count();
    let callers = panic.callers.iter().map(|caller| Line {
        part: LinePart::Message,
        text: format!("  called from {}", caller.shown()),
    });
    let line = Line { part: LinePart::Place, text: format!("  {}", panic.line.shown()) };
    parts.splice(at..at, std::iter::once(line).chain(callers));
}

pub(super) fn lines(outcome: &TestOutcome, extent: OutputExtent) -> Vec<String> {
    let own = outcome.output.own_lines();
    let own: Vec<String> = match extent {
        OutputExtent::Whole => own.into_iter().map(str::to_owned).collect(),
        OutputExtent::Shortened => panics::beyond_findings(&own, &outcome.verdict.findings),
    };
    if own.is_empty() {
        return Vec::new();
    }
    // The first lines often show the first error, and the last lines show the end of the test.
    let skipped = match extent {
        OutputExtent::Whole => 0,
        OutputExtent::Shortened => own.len().saturating_sub(HEAD + TAIL),
    };
    let indented = |line: &String| format!("{:13}  {}", "", escape::colors(line));
    let mut lines = vec![format!("{:13}{}", "", style::dim("output:"))];
    if skipped == 0 {
        lines.extend(own.iter().map(indented));
    } else {
        lines.extend(own[..HEAD].iter().map(indented));
        let more = format!("… {skipped} more lines with --verbose");
        lines.push(format!("{:13}  {}", "", style::dim(&more)));
        lines.extend(own[HEAD + skipped..].iter().map(indented));
    }
    lines
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::finding::{Code, Finding};

    use super::*;
    use crate::presentation::presenters::example::leaky;
    use crate::presentation::presenters::findings;

    #[test]
    fn a_panic_has_its_line_below_the_message_and_is_not_repeated() {
        let message = "the body panicked: why\n  left: 1";
        let finding = Finding::new(Code::TestFailed, message).hint("what to do");
        let printed = |place: &str| {
            let mut outcome = leaky();
            outcome.output.stderr = format!(
                "before\nthread 'a' (1) panicked at {place}:5:\nwhy\n  left: 1\n\
                 note: run with `RUST_BACKTRACE=1` environment variable\n"
            );
            outcome.verdict.findings = vec![finding.clone()];
            let mut parts = findings::parts(&finding, Verbosity::Normal);
            add_place(&mut parts, &outcome);
            let texts: Vec<String> = parts.into_iter().map(|line| line.text).collect();
            (texts, outcome)
        };
        let (lines_of, outcome) = printed("tests/mem.rs:20");
        assert_eq!(lines_of[2..], ["  tests/mem.rs:20", "  hint: what to do"]);
        let shown = |extent| lines(&outcome, extent).len();
        assert_eq!((shown(OutputExtent::Shortened), shown(OutputExtent::Whole)), (2, 6));
        assert_eq!(printed("/rustc/a/library/core/src/option.rs:2").0.len(), 3);
    }
}
