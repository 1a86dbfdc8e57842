//! What a failed test printed, below its findings.

use crate::discovery::task::TestOutcome;
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::{panics, style};
use crate::system::escape;

const HEAD: usize = 4;
const TAIL: usize = 6;

/// All of the output, or only the lines that help most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Shortened,
}

impl Extent {
    /// With a live view the output is not printed as it comes.
    pub(super) fn new(verbosity: Verbosity, is_live: bool) -> Self {
        if is_live || verbosity == Verbosity::Verbose { Self::Whole } else { Self::Shortened }
    }
}

pub(super) fn lines(outcome: &TestOutcome, extent: Extent) -> Vec<String> {
    let own = outcome.output.own_lines();
    let own: Vec<String> = match extent {
        Extent::Whole => own.into_iter().map(str::to_owned).collect(),
        Extent::Shortened => panics::without_repeats(&own, &outcome.verdict.findings),
    };
    if own.is_empty() {
        return Vec::new();
    }
    // The first lines often show the first error, and the last lines show the end of the test.
    let skipped = match extent {
        Extent::Whole => 0,
        Extent::Shortened => own.len().saturating_sub(HEAD + TAIL),
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
