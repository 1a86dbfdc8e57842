//! GitHub's workflow commands, which show each finding at the line of its test. They are printed on
//! stderr, so that the contents of stdout do not change. GitHub's runner reads both.

use std::path::PathBuf;

use memcheck_core::judgement::finding::{Class, Level};
use memcheck_core::judgement::location;

use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::presentation::events::Presenter;

#[derive(Debug)]
pub(crate) struct GithubAnnotations {
    workspace_root: PathBuf,
}

impl GithubAnnotations {
    pub(crate) fn new(workspace_root: PathBuf) -> Self {
        Self { workspace_root }
    }
}

impl Presenter for GithubAnnotations {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let file = location::source(&self.workspace_root, task.subject.file());
        let file = file.strip_prefix(&self.workspace_root).unwrap_or(&file);
        for finding in &outcome.verdict.findings {
            let denied = match finding.code.row().class {
                Class::Measured | Class::Instrument => true,
                Class::Bookkeeping => outcome.verdict.denied.contains(&finding.code),
            };
            let place = format!(
                "file={},line={}",
                property(&file.display().to_string()),
                task.subject.line()
            );
            let title = format!("{} on {}: {}", task.name(), task.leg.name(), finding.code);
            print(denied, &place, &title, &finding.message);
        }
    }

    fn note(&mut self, note: &Note) {
        let place = note.path.as_ref().map(|path| {
            let path = path.strip_prefix(&self.workspace_root).unwrap_or(path);
            format!("file={}", property(&path.display().to_string()))
        });
        let denied = note.level == Level::Deny;
        print(denied, &place.unwrap_or_default(), note.finding.code.name(), &note.finding.message);
    }
}

fn print(denied: bool, place: &str, title: &str, message: &str) {
    // `say!` cannot be used because it adds colors, and a workflow command must not have any.
    eprintln!("{}", command(denied, place, title, message));
}

fn command(denied: bool, place: &str, title: &str, message: &str) -> String {
    let level = if denied { "error" } else { "warning" };
    let separator = if place.is_empty() { "" } else { "," };
    format!("::{level} {place}{separator}title={}::{}", property(title), data(message))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_as_the_runner_wants_them() {
        assert_eq!(
            command(true, "file=a.rs,line=3", "a::b, c", "100%\nmore: x"),
            "::error file=a.rs,line=3,title=a%3A%3Ab%2C c::100%25%0Amore: x"
        );
        assert_eq!(command(false, "", "not-built", "m"), "::warning title=not-built::m");
    }
}
