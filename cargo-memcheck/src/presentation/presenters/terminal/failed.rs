//! The list of the tests that failed, at the end of a run: each has its line, its cause and its next
//! command.

use super::layout::{self, INDENT, LEAST};
use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::presenters::brief::Brief;
use crate::presentation::presenters::cut;
use crate::presentation::presenters::kinds::FailureKind;
use crate::presentation::presenters::places::FindingPlaces;
use crate::presentation::presenters::{next_step, style};
use crate::system::escape;

/// A command after the words that say when it is the right one.
pub(super) type NextCommand = (&'static str, String);

/// The tests that failed so far.
#[derive(Debug, Default)]
pub(super) struct FailedTests(Vec<(FailureKind, Vec<String>)>);

impl FailedTests {
    pub(super) fn add(&mut self, (kind, lines): (FailureKind, Vec<String>)) {
        self.0.push((kind, lines));
    }

    /// All lines, by the kinds of the failures: memory first.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut tests: Vec<_> = self.0.iter().collect();
        tests.sort_by_key(|(kind, _)| *kind);
        tests.into_iter().flat_map(|(_, lines)| lines).cloned().collect()
    }
}

/// `FAIL app::mem llama::kv_cache: leak  src/model.rs:34`, the cause, and the commands.
pub(super) fn lines(
    task: &Task,
    outcome: &TestOutcome,
    places: &FindingPlaces,
    commands: Vec<NextCommand>,
    (leg, columns): (&str, Option<usize>),
) -> (FailureKind, Vec<String>) {
    let verdict = &outcome.verdict;
    let Brief { at, mark, cause, kind, fix } = Brief::of(task, outcome, places);
    let mark = mark.map(|mark| format!(" ({mark})")).unwrap_or_default();
    let at = at.map(|(file, line)| {
        format!("  {}{mark}", style::place(&escape::line(&format!("{file}:{line}"))))
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
    let mut lines = vec![first];
    for text in cause.into_iter().chain(fix.map(|fix| format!("fix: {fix}"))) {
        lines.extend(short(&text, room).iter().map(|text| format!("{:INDENT$}{text}", "")));
    }
    for (when, command) in commands {
        let command = style::hint(&command);
        let when = format!("{:INDENT$}{}", "", style::hint(when));
        lines.extend(layout::with_command(&when, &command, INDENT + 2, columns));
    }
    (kind, lines)
}

/// A text in at most two lines.
fn short(text: &str, room: usize) -> Vec<String> {
    let (first, rest) = cut::in_two(&escape::line(text), room, room.saturating_sub(2));
    std::iter::once(first).chain(rest.map(|rest| format!("  {rest}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    fn plain(columns: Option<usize>) -> Vec<String> {
        let commands = vec![
            ("next:", "the command".to_owned()),
            ("if it is intended:", "the command that accepts it".to_owned()),
        ];
        let places = FindingPlaces::new("/w".into());
        let (_, lines) = lines(&task(), &leaky(), &places, commands, ("", columns));
        let plain = |line: &String| console::strip_ansi_codes(&escape::terminal(line)).into_owned();
        lines.iter().map(plain).collect()
    }

    #[test]
    fn a_failure_has_its_line_its_cause_and_its_commands() {
        let all = plain(None);
        assert!(all[0].ends_with("FAIL app::mem a::b: leak, retained  src/model.rs:20"), "{all:?}");
        let cause = "a kept tensor holds the graph that computed it (graph-kept)";
        assert_eq!(all[1], format!("{:INDENT$}{cause}", ""));
        assert!(all[2].contains("fix: ") && all[2].contains("`detach()`"), "{all:?}");
        let commands = ["next:  the command", "if it is intended:  the command that accepts it"];
        assert_eq!(all[3..], commands.map(|it| format!("{:INDENT$}{it}", "")));
        let narrow = plain(Some(50));
        let cause = ["a kept tensor holds the graph that", "  computed it (graph-kept)"];
        assert_eq!(narrow[1..3], cause.map(|it| format!("{:INDENT$}{it}", "")));
        assert!(narrow[4].ends_with('\u{2026}'), "a longer text is cut: {narrow:?}");
        let below = ["next:  the command", "if it is intended:", "  the command that accepts it"];
        assert_eq!(narrow[5..], below.map(|it| format!("{:INDENT$}{it}", "")));
    }

    #[test]
    fn failures_of_memory_come_first_and_the_others_keep_their_order() {
        let mut failed = FailedTests::default();
        let kinds = [FailureKind::End, FailureKind::Growth, FailureKind::End, FailureKind::Growth];
        for (number, kind) in kinds.into_iter().enumerate() {
            failed.add((kind, vec![number.to_string()]));
        }
        assert_eq!(failed.lines(), ["1", "3", "0", "2"]);
    }
}
