//! The lines of a finding in the terminal: broken between words at the width of the terminal, and
//! colored by the question that each line answers.

use memcheck_core::judgement::finding::Finding;
use memcheck_core::presentation::text::{Line, LinePart};

use super::hyperlinks::Hyperlinks;
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::{cut, findings, style};
use crate::system::escape;

/// The column of everything below the line of a test.
pub(super) const INDENT: usize = 13;

/// A narrower terminal gets lines of this width.
pub(super) const LEAST: usize = 40;

/// The columns of stderr; `None` if it is not a terminal, so that logs keep whole lines.
pub(super) fn columns() -> Option<usize> {
    let (_, columns) = console::Term::stderr().size_checked()?;
    Some(usize::from(columns))
}

/// The names of an executable and a test, if they fit into `room` with at most the package left out of
/// the first.
pub(super) fn fitted(binary: &str, name: &str, room: Option<usize>) -> Option<(String, String)> {
    let width = console::measure_text_width;
    let fits = |binary: &str| room.is_none_or(|room| width(binary) + width(name) <= room);
    let without_package = || binary.split_once("::").map(|(_, target)| format!("\u{2026}{target}"));
    if fits(binary) {
        return Some((binary.to_owned(), name.to_owned()));
    }
    without_package().filter(|short| fits(short)).map(|short| (short, name.to_owned()))
}

/// The same, at any cost: without the package, then without the executable, then without the middle of
/// the name, whose end says the most.
pub(super) fn shortened(binary: &str, name: &str, room: Option<usize>) -> (String, String) {
    if let Some(fitted) = fitted(binary, name, room) {
        return fitted;
    }
    let dots = "\u{2026}";
    let room = room.unwrap_or(usize::MAX).saturating_sub(1);
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= room {
        return (dots.to_owned(), name.to_owned());
    }
    let kept = room.saturating_sub(1).max(8).min(letters.len());
    let (head, tail) = (kept / 3, kept - kept / 3);
    let start: String = letters[..head].iter().collect();
    let end: String = letters[letters.len() - tail..].iter().collect();
    (dots.to_owned(), format!("{start}{dots}{end}"))
}

/// Breaks a line between words. The parts begin two columns after the line.
fn broken(text: &str, columns: Option<usize>) -> Vec<String> {
    // A line end in a name must not begin a line.
    let text = escape::line(text);
    let Some(columns) = columns else { return vec![text] };
    let indent = text.len() - text.trim_start().len();
    let (first, further) = (" ".repeat(indent), " ".repeat(indent + 2));
    let options = cut::lines(columns.max(LEAST)).initial_indent(&first).subsequent_indent(&further);
    let text = with_units(text.trim_start());
    let lines = textwrap::wrap(&text, options).into_iter();
    lines.map(|line| line.replace(NO_BREAK, " ")).collect()
}

/// A space at which no line is broken.
const NO_BREAK: char = '\u{a0}';

/// Makes one word of each number and its unit.
fn with_units(text: &str) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "%"];
    let mut words = text.split(' ');
    let mut joined = words.next().unwrap_or_default().to_owned();
    for word in words {
        let follows_number = joined.ends_with(|last: char| last.is_ascii_digit());
        let is_unit = UNITS.contains(&word.trim_end_matches([')', ',', ':', ';', '.']));
        joined.push(if follows_number && is_unit { NO_BREAK } else { ' ' });
        joined.push_str(word);
    }
    joined
}

/// A line below that of a test, without color.
pub(super) fn below(text: &str, columns: Option<usize>) -> Vec<String> {
    broken(&format!("{:INDENT$}{text}", ""), columns)
}

/// A text and its command: in one line, or in two if that is too long for the terminal, so that the
/// command is whole if it fits.
pub(super) fn with_command(
    text: &str,
    command: &str,
    indent: usize,
    columns: Option<usize>,
) -> Vec<String> {
    let width = console::measure_text_width;
    let line = format!("{text}  {command}");
    match columns.is_none_or(|columns| width(&line) <= columns) {
        true => vec![line.trim_end().to_owned()],
        false => vec![text.to_owned(), format!("{:indent$}{command}", "")],
    }
}

/// The lines of a finding. `fails` is true if the finding is not only a warning.
pub(super) fn finding(
    finding: &Finding,
    verbosity: Verbosity,
    fails: bool,
    (columns, links): (Option<usize>, Option<&Hyperlinks>),
) -> Vec<String> {
    lines(findings::parts(finding, verbosity), fails, (columns, links))
}

/// The lines of a finding that follows from another one.
pub(super) fn consequence(
    finding: &Finding,
    verbosity: Verbosity,
    (columns, links): (Option<usize>, Option<&Hyperlinks>),
) -> Vec<String> {
    lines(findings::consequence(finding, verbosity), false, (columns, links))
}

/// The lines with their colors and links.
pub(super) fn lines(
    all: Vec<Line>,
    fails: bool,
    (columns, links): (Option<usize>, Option<&Hyperlinks>),
) -> Vec<String> {
    let mut lines = Vec::new();
    for Line { part, text } in all {
        let parts = below(&text, columns);
        lines.extend(parts.iter().enumerate().map(|(number, text)| match (part, number) {
            (LinePart::Summary, 0) => summary(text, fails),
            (LinePart::Place, _) => style::place(&match links {
                Some(links) => links.linked(text),
                None => text.clone(),
            }),
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
        LinePart::Message | LinePart::Source | LinePart::Operation => text.to_owned(),
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
    fn names_lose_the_package_then_the_executable_then_the_middle() {
        let (binary, name) = ("memcheck-tests::workloads", "generation::kv_cache_of_a_long_prompt");
        let short = |room| shortened(binary, name, room);
        assert_eq!(short(None), (binary.to_owned(), name.to_owned()));
        assert_eq!(short(Some(62)), (binary.to_owned(), name.to_owned()));
        assert_eq!(short(Some(61)), ("\u{2026}workloads".to_owned(), name.to_owned()));
        assert_eq!(fitted(binary, name, Some(46)), None);
        assert_eq!(short(Some(46)), ("\u{2026}".to_owned(), name.to_owned()));
        let (dots, cut) = short(Some(30));
        assert_eq!(
            (dots.as_str(), cut.as_str()),
            ("\u{2026}", "generatio\u{2026}he_of_a_long_prompt")
        );
    }

    #[test]
    fn a_line_is_broken_between_words_and_only_in_a_terminal() {
        let message = "cuda:0 grows by 131,084 B (128.0 KiB) per iteration, and a/long/path/that/does/not/fit/into/one/line.rs:11";
        let found = Finding::new(Code::Leak, message).hint("a hint");
        let lines = |columns| plain(&finding(&found, Verbosity::Normal, true, (columns, None)));
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
    fn a_command_that_does_not_fit_behind_the_failure_has_a_line() {
        let (failure, command) = ("FAIL app::mem step: leak", "cargo memcheck profile step");
        let line = format!("{failure}  {command}");
        let whole = std::slice::from_ref(&line);
        let with_command =
            |command: &str, columns| super::with_command(failure, command, INDENT, columns);
        assert_eq!(with_command(command, None), whole);
        assert_eq!(with_command(command, Some(line.len())), whole);
        let two = [failure.to_owned(), format!("{:13}{command}", "")];
        assert_eq!(with_command(command, Some(line.len() - 1)), two);
        assert_eq!(with_command("", Some(80)), [failure]);
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        let text = "was 4,329,520 B (4.13 MiB), is 5,378,096 B (5.13 MiB) (+24.2 %): a B";
        for columns in 40..100 {
            let lines = below(text, Some(columns));
            assert_eq!(lines.iter().map(|it| it.trim()).collect::<Vec<_>>().join(" "), text);
            for line in &lines {
                let number = line.ends_with(|last: char| last.is_ascii_digit());
                assert!(!number, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn a_word_with_hyphens_is_not_broken() {
        let text = "the peak regression of memcheck-tests/tests/of-a-model.rs: graph-kept";
        for columns in 40..90 {
            for line in below(text, Some(columns)) {
                assert!(!line.ends_with('-'), "{columns}: {line}");
            }
        }
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
