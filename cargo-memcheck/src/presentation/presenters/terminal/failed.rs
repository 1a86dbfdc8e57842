//! The list of the tests that failed, at the end of a run: each has its line, its cause and its next
//! command.

use memcheck_core::presentation::text::LINE_OF_TEST;

use super::layout::{self, INDENT, LEAST};
use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::presenters::brief::Brief;
use crate::presentation::presenters::cut::cut;
use crate::presentation::presenters::places::FindingPlaces;
use crate::presentation::presenters::{next_step, style};
use crate::system::escape;

/// A command after the words that say when it is the right one.
pub(super) type NextCommand = (&'static str, String);

/// `FAIL app::mem llama::kv_cache: leak  src/model.rs:34`, the cause, and the commands.
pub(super) fn lines(
    task: &Task,
    outcome: &TestOutcome,
    places: &FindingPlaces,
    commands: Vec<NextCommand>,
    (leg, columns): (&str, Option<usize>),
) -> Vec<String> {
    let verdict = &outcome.verdict;
    let Brief { at, is_of_test, cause } = Brief::of(task, outcome, places);
    let of_test = if is_of_test { format!(" ({LINE_OF_TEST})") } else { String::new() };
    let at = at.map(|(file, line)| {
        format!("  {}{of_test}", style::place(&escape::line(&format!("{file}:{line}"))))
    });
    let first = format!(
        "{} {} {}{}: {}{}",
        style::status(verdict.status),
        style::dim(&task.binary.id),
        style::strong(task.name()),
        style::dim(leg),
        next_step::codes(verdict),
        at.unwrap_or_default(),
    );
    let room = columns.map_or(usize::MAX, |columns| columns.max(LEAST).saturating_sub(INDENT));
    let cause = cause.map(|cause| cut(&escape::line(&cause), room));
    let mut lines = vec![first];
    lines.extend(cause.map(|cause| format!("{:INDENT$}{cause}", "")));
    for (when, command) in commands {
        let command = style::hint(&command);
        // These words say nothing that the place of the command does not say.
        if when == next_step::NEXT {
            lines.push(format!("{:INDENT$}{command}", ""));
            continue;
        }
        let when = format!("{:INDENT$}{}", "", style::hint(when));
        lines.extend(layout::with_command(&when, &command, INDENT + 2, columns));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    fn plain(columns: Option<usize>) -> Vec<String> {
        let commands = vec![
            (next_step::NEXT, "the command".to_owned()),
            ("if it is intended:", "the command that accepts it".to_owned()),
        ];
        let places = FindingPlaces::new("/w".into());
        let lines = lines(&task(), &leaky(), &places, commands, ("", columns));
        let plain = |line: &String| console::strip_ansi_codes(&escape::terminal(line)).into_owned();
        lines.iter().map(plain).collect()
    }

    #[test]
    fn a_failure_has_its_line_its_cause_and_its_commands() {
        let all = plain(None);
        assert!(all[0].ends_with("FAIL app::mem a::b: leak, retained  src/model.rs:20"), "{all:?}");
        let cause = "a kept tensor holds the graph that computed it (graph-kept)";
        assert_eq!(all[1], format!("{:INDENT$}{cause}", ""));
        let accepted = "if it is intended:  the command that accepts it";
        assert_eq!(all[2..], ["the command", accepted].map(|it| format!("{:INDENT$}{it}", "")));
        let narrow = plain(Some(50));
        assert_eq!(narrow[1], format!("{:INDENT$}a kept tensor holds the graph that\u{2026}", ""));
        let below = ["if it is intended:", "  the command that accepts it"];
        assert_eq!(narrow[3..], below.map(|it| format!("{:INDENT$}{it}", "")));
    }
}
