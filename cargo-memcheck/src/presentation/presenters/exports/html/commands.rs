//! The next commands for a test, ready to be pasted into a shell.

use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::judgement::verdict::Status;
use serde::Serialize;

use crate::discovery::task::{Task, TestOutcome, TestSubject};
use crate::system::escape;
use crate::system::shell::quote;

/// A command and its purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct NextCommand {
    pub(super) purpose: &'static str,
    pub(super) command: String,
}

/// The commands for the first page of the report: this test again, the one after that and, if there
/// are new figures, the one that accepts them.
pub(super) fn most_helpful(
    task: &Task,
    outcome: &TestOutcome,
    baselines_flag: &str,
) -> Vec<NextCommand> {
    let mut commands = next(task, outcome, baselines_flag);
    let last = commands.iter().position(|next| next.purpose == ACCEPT).unwrap_or(1);
    commands.truncate(last + 1);
    commands
}

const AGAIN: &str = "test the change";
pub(super) const ACCEPT: &str = "accept the figures of this run, if they are intended";

/// All commands that help with this outcome.
pub(super) fn next(task: &Task, outcome: &TestOutcome, baselines_flag: &str) -> Vec<NextCommand> {
    let add = |purpose, command: String| NextCommand { purpose, command };
    let is_ignored = task.subject.test().is_some_and(|entry| entry.ignored);
    let test = format!("{}{}", select(task), if is_ignored { " --run-ignored all" } else { "" });
    let verdict = &outcome.verdict;
    let has_call_sites =
        outcome.report.as_ref().is_some_and(|report| report.record.attribution.is_some());
    let mut commands = Vec::new();
    if matches!(task.subject, TestSubject::Program { .. }) {
        return commands;
    }
    if verdict.status == Status::Ignored {
        return vec![add("run this ignored test", format!("cargo memcheck {test}"))];
    }
    if !matches!(verdict.status, Status::Passed) {
        commands.push(add(AGAIN, format!("cargo memcheck {test}")));
    }
    let is_about_memory = |finding: &Finding| finding.code.is_about_memory();
    if verdict.status == Status::Passed || verdict.findings.iter().any(is_about_memory) {
        let purpose = match has_call_sites {
            true => "see all call sites and all holders at the peak in the terminal",
            false => "show the call sites that hold the memory",
        };
        commands.push(add(purpose, format!("cargo memcheck profile {test}")));
    }
    let pending = outcome.pending().and_then(|path| path.file_name());
    if let Some(name) = pending.map(|name| name.to_string_lossy()) {
        let file = name.strip_suffix(".new").unwrap_or(&name);
        let command = format!("cargo memcheck accept {}{baselines_flag}", word(file));
        commands.push(add(ACCEPT, command));
    }
    if let Some(code) = verdict.findings.iter().find_map(code) {
        commands.push(add("read the explanation", format!("cargo memcheck explain {code}")));
    }
    commands
}

/// The cause explains more than the finding.
fn code(finding: &Finding) -> Option<String> {
    let is_new = finding.code == Code::MissingBaseline;
    let code = finding.cause.as_ref().map(|cause| word(&cause.code));
    (!is_new).then(|| code.unwrap_or_else(|| finding.code.to_string()))
}

/// The whole path selects one test; `--exact` makes a filter match nothing else.
fn select(task: &Task) -> String {
    let (binary, device) = (&task.binary.id, task.leg.name());
    let target = match binary.rsplit_once("::").map(|(_, target)| target) {
        None => " --lib".to_owned(),
        Some(target) => match target.split_once('/') {
            Some((kind @ ("bin" | "bench" | "example"), name)) => {
                format!(" --{kind} {}", word(name))
            }
            _ => format!(" --test {}", word(target)),
        },
    };
    format!(
        "{} --exact -p {}{target} --device {}",
        word(task.name()),
        word(&task.package),
        word(&device)
    )
}

fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/=,@".contains(c);
    let text = escape::line(text);
    let plain = !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain);
    if plain { text } else { quote(&text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::presenters::example::leaky;

    #[test]
    fn a_leak_is_run_again_profiled_and_explained() {
        let commands = next(&task(), &leaky(), "");
        let commands: Vec<&str> = commands.iter().map(|next| next.command.as_str()).collect();
        assert_eq!(
            commands,
            [
                "cargo memcheck a::b --exact -p app --test mem --device cpu",
                "cargo memcheck profile a::b --exact -p app --test mem --device cpu",
                "cargo memcheck explain graph-kept",
            ]
        );
    }

    #[test]
    fn a_name_is_one_word_of_a_shell() {
        assert_eq!(word("a::b"), "a::b");
        assert_eq!(word("it's [seq=1]"), r"'it'\''s [seq=1]'");
        assert_eq!((word("-x"), word("")), ("'-x'".to_owned(), "''".to_owned()));
    }
}
