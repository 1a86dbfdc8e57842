//! The lines of a finding in the terminal: broken between words at the width of the terminal, and
//! colored by the question that each line answers.

use memcheck_core::judgement::finding::Finding;
use memcheck_core::presentation::text::{Line, LinePart};

use crate::invocation::values::Verbosity;
use crate::presentation::presenters::{findings, style};
use crate::system::escape;

/// The column of everything below the line of a test.
pub(super) const INDENT: usize = 13;

/// A narrower terminal gets lines of this width.
const LEAST: usize = 40;

/// The columns of stderr; `None` if it is not a terminal, so that logs keep whole lines.
pub(super) fn columns() -> Option<usize> {
    let (_, columns) = console::Term::stderr().size_checked()?;
    Some(usize::from(columns))
}

/// Breaks a line between words. The parts begin two columns after the line. A word that is too long
/// stays whole, so that a path can be copied.
fn broken(text: &str, columns: Option<usize>) -> Vec<String> {
    // A line end in a name must not begin a line.
    let text = escape::line(text);
    let Some(columns) = columns else { return vec![text] };
    let indent = text.len() - text.trim_start().len();
    let (first, further) = (" ".repeat(indent), " ".repeat(indent + 2));
    let options = textwrap::Options::new(columns.max(LEAST))
        .initial_indent(&first)
        .subsequent_indent(&further)
        .break_words(false);
    textwrap::wrap(text.trim_start(), options).into_iter().map(Into::into).collect()
}

/// A line below that of a test, without color.
pub(super) fn below(text: &str, columns: Option<usize>) -> Vec<String> {
    broken(&format!("{:INDENT$}{text}", ""), columns)
}

/// The lines of a finding. `fails` is true if the finding is not only a warning.
pub(super) fn finding(
    finding: &Finding,
    verbosity: Verbosity,
    fails: bool,
    columns: Option<usize>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for Line { part, text } in findings::parts(finding, verbosity) {
        let parts = below(&text, columns);
        lines.extend(parts.iter().enumerate().map(|(number, text)| match (part, number) {
            (LinePart::Summary, 0) => summary(text, fails),
            _ => colored(part, text),
        }));
    }
    lines
}

/// The code of the finding has the color of its gravity.
fn summary(text: &str, fails: bool) -> String {
    let (code, message) = text.split_once(": ").unwrap_or((text, ""));
    let (indent, code) = code.split_at(code.len() - code.trim_start().len());
    let code = format!("{code}:");
    let code = if fails { style::error(&code) } else { style::warning(&code) };
    format!("{indent}{code} {}", style::strong(message))
}

fn colored(part: LinePart, text: &str) -> String {
    match part {
        LinePart::Summary => style::strong(text),
        LinePart::Message | LinePart::Operation => text.to_owned(),
        LinePart::Place => style::place(text),
        LinePart::Amount => style::amount(text),
        LinePart::More => style::dim(text),
        LinePart::Cause => style::strong(text),
        LinePart::Remedy => style::hint(text),
    }
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::finding::Code;

    use super::*;

    fn plain(lines: &[String]) -> Vec<String> {
        let shown = |line: &String| console::strip_ansi_codes(&escape::terminal(line)).into_owned();
        lines.iter().map(shown).collect()
    }

    #[test]
    fn a_line_is_broken_between_words_and_only_in_a_terminal() {
        let message = "cuda:0 grows by 131,084 B (128.0 KiB) per iteration, and a/long/path/that/does/not/fit/into/one/line.rs:11";
        let found = Finding::new(Code::Leak, message).hint("a hint");
        let lines = |columns| plain(&finding(&found, Verbosity::Normal, true, columns));
        let whole = lines(None);
        assert_eq!(whole[0], format!("{:13}leak: {message}", ""));
        let narrow = lines(Some(60));
        assert_eq!(narrow[0], "             leak: cuda:0 grows by 131,084 B (128.0 KiB) per");
        assert_eq!(narrow[1], "               iteration, and");
        assert!(narrow[2].trim_start().starts_with("a/long/path") && narrow[2].ends_with(".rs:11"));
        assert_eq!(narrow.last().unwrap(), "               hint: a hint");
        for line in narrow.iter().filter(|line| !line.contains(".rs:11")) {
            assert!(textwrap::core::display_width(line) <= 60, "{line}");
        }
        assert_eq!(lines(Some(3)), lines(Some(LEAST)), "no terminal is too narrow");
    }

    #[test]
    fn each_part_of_a_finding_has_its_color() {
        let code = |part| {
            let text = escape::terminal(&colored(part, "text"));
            text.split_once('m').unwrap_or_default().0.to_owned()
        };
        let codes =
            [LinePart::Place, LinePart::Amount, LinePart::More, LinePart::Cause, LinePart::Remedy]
                .map(code);
        let distinct: std::collections::BTreeSet<_> = codes.iter().collect();
        assert_eq!(distinct.len(), codes.len(), "{codes:?}");
        assert_eq!(colored(LinePart::Operation, "text"), "text");
    }
}
