//! GitHub's workflow commands, which show each finding at the line that causes it. They are printed
//! on stderr, so that the contents of stdout do not change. GitHub's runner reads both.
//!
//! GitHub shows ten annotations of a step. A failure is printed at once, and warnings wait for the
//! end, so that they do not take the places of failures.

use memcheck_core::judgement::finding::Level;
use memcheck_core::judgement::location::Roots;

use super::places::FindingPlaces;
use super::{brief, findings, next_step};
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::invocation::options::baselines_flag;
use crate::presentation::events::Presenter;
use crate::presentation::tally::Tally;
use crate::system::escape::{Form, escape};
use crate::system::printing::eprint_raw;

const MOST: usize = 10;

#[derive(Debug)]
pub(crate) struct GithubAnnotations {
    places: FindingPlaces,
    /// The flag of the folder of the baselines.
    baselines_flag: Vec<String>,
    printed: usize,
    warnings: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Annotation {
    denied: bool,
    pub(super) text: String,
}

impl GithubAnnotations {
    pub(crate) fn new(roots: Roots<'_>) -> Self {
        Self {
            places: FindingPlaces::new(roots.workspace.to_owned()),
            baselines_flag: baselines_flag(roots),
            printed: 0,
            warnings: Vec::new(),
        }
    }

    pub(super) fn of_test(&self, task: &Task, outcome: &TestOutcome) -> Vec<Annotation> {
        let annotation = |folded: findings::Folded<'_>| {
            let finding = folded.finding;
            let denied = findings::is_denied(finding, &outcome.verdict);
            let title = format!("{} on {}: {}", task.name(), task.leg.name(), finding.code);
            let (file, line) = brief::place(task, outcome, finding, &self.places);
            let place = format!("file={},line={line}", property(&file.display().to_string()));
            let mut message = vec![findings::explained(finding, &folded.consequences)];
            if denied {
                message.extend(next_step::lines(task, outcome, &self.baselines_flag));
            }
            command(denied, &place, &title, &message.join("\n"))
        };
        findings::folded(&outcome.verdict.findings).into_iter().map(annotation).collect()
    }

    pub(super) fn of_note(&self, note: &Note) -> Annotation {
        let place = note.path.as_ref().map(|path| {
            format!("file={}", property(&self.places.relative(path).display().to_string()))
        });
        let denied = note.level == Level::Deny;
        let title = note.finding.code.name();
        command(denied, &place.unwrap_or_default(), title, &note.finding.message)
    }

    /// Returns the annotations that can be printed now.
    fn add(&mut self, annotations: Vec<Annotation>) -> Vec<String> {
        let mut now = Vec::new();
        for Annotation { denied, text } in annotations {
            if !denied {
                self.warnings.push(text);
            } else if self.printed < MOST {
                self.printed += 1;
                now.push(text);
            }
        }
        now
    }

    fn rest(&mut self) -> Vec<String> {
        let room = MOST - self.printed;
        self.printed = MOST;
        std::mem::take(&mut self.warnings).into_iter().take(room).collect()
    }
}

impl Presenter for GithubAnnotations {
    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        let annotations = self.of_test(task, outcome);
        self.add(annotations).iter().for_each(|line| eprint_raw(line));
    }

    fn note(&mut self, note: &Note) {
        let annotation = self.of_note(note);
        self.add(vec![annotation]).iter().for_each(|line| eprint_raw(line));
    }

    fn finished(&mut self, _tally: &Tally, _exit_code: u8) {
        self.rest().iter().for_each(|line| eprint_raw(line));
    }
}

fn command(denied: bool, place: &str, title: &str, message: &str) -> Annotation {
    let level = if denied { "error" } else { "warning" };
    let separator = if place.is_empty() { "" } else { "," };
    let text = format!("::{level} {place}{separator}title={}::{}", property(title), data(message));
    Annotation { denied, text }
}

fn data(text: &str) -> String {
    let text = escape(text, Form::Text);
    text.replace('%', "%25").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::every;
    use super::super::example::leaky;
    use super::*;
    use crate::discovery::task::example::task;

    #[test]
    fn texts_are_escaped_as_the_runner_wants_them() {
        assert_eq!(
            command(true, "file=a.rs,line=3", "a::b, c", "100%\nmore: x").text,
            "::error file=a.rs,line=3,title=a%3A%3Ab%2C c::100%25%0Amore: x"
        );
        assert_eq!(command(false, "", "not-built", "m").text, "::warning title=not-built::m");
    }

    #[test]
    fn a_finding_is_shown_at_the_line_that_leaks_with_its_cause() {
        let annotations = every::annotations();
        let mut outcome = leaky();
        let texts = |outcome: &TestOutcome| -> Vec<String> {
            annotations.of_test(&task(), outcome).into_iter().map(|it| it.text).collect()
        };
        let leak = texts(&outcome).remove(0);
        assert!(leak.starts_with("::error file=src/model.rs,line=20,title="), "{leak}");
        assert!(leak.contains("%0Acause: ") && leak.contains("%0Aremedy: "), "{leak}");
        let finding = &mut outcome.verdict.findings[0];
        finding.cause = None;
        finding.keeps_at = None;
        finding.sites.iter_mut().for_each(|site| site.file = Some("/elsewhere/x.rs".to_owned()));
        let leak = texts(&outcome).remove(0);
        let (file, line) = (task().subject.file().to_owned(), task().subject.line());
        let file = annotations.places.relative(&file);
        assert!(leak.contains(&format!("file={},line={line},", file.display())), "{leak}");
        assert!(!leak.contains("cause"), "{leak}");
    }

    #[test]
    fn failures_come_before_warnings_and_ten_are_printed() {
        let mut annotations = every::annotations();
        let some = |denied, count: usize| -> Vec<Annotation> {
            (0..count).map(|_| command(denied, "", "title", "m")).collect()
        };
        assert_eq!(annotations.add(some(false, 30)).len(), 0);
        assert_eq!(annotations.add(some(true, 7)).len(), 7);
        let rest = annotations.rest();
        assert_eq!(rest.len(), 3);
        assert!(rest.iter().all(|text| text.starts_with("::warning ")), "{rest:?}");
        let mut full = every::annotations();
        assert_eq!(full.add(some(true, 12)).len(), 10);
        assert_eq!(full.add(some(false, 1)).len() + full.rest().len(), 0);
    }
}
