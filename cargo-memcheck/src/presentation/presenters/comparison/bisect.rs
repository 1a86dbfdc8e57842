//! A bisection: its steps, and at last the commit or the update with the change that it made.

use memcheck_core::size::{counted, exact};
use serde::{Deserialize, Serialize};

use super::compare::{changed_lines, difference, value};
use crate::comparison::bisect::Reason;
use crate::comparison::runs::{ChangedTest, Comparison};
use crate::execution::lock_file::Update;
use crate::presentation::presenters::{json, style};
use crate::system::escape;
use crate::system::printing::{eprint_line, print_lines};

const VERSION: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BisectOutcome {
    Good,
    Bad,
    /// The tests did not run.
    Skipped,
}

/// A run of the tests.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BisectStep {
    /// The commit, or the number of the lock file.
    pub(crate) name: String,
    /// The first line of the message of the commit, or the updates of the lock file.
    pub(crate) subject: String,
    pub(crate) outcome: BisectOutcome,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Commit {
    pub(crate) commit: String,
    pub(crate) subject: String,
    pub(crate) author: String,
    /// The day, in ISO 8601.
    pub(crate) date: String,
}

/// The things that can be the culprit: exactly one, unless steps were skipped.
#[derive(Debug, Clone)]
pub(crate) enum Culprits {
    Commits(Vec<Commit>),
    Updates(Vec<Update>),
}

#[derive(Debug, Clone)]
pub(crate) struct Bisection {
    pub(crate) good: String,
    pub(crate) bad: String,
    /// The number of commits, or of updates, that were searched.
    pub(crate) range: usize,
    pub(crate) culprits: Culprits,
    pub(crate) steps: Vec<BisectStep>,
    /// All runs, the good one among them.
    pub(crate) builds: usize,
    /// The last good run and the first bad one.
    pub(crate) comparison: Comparison,
}

/// `host peak_allocated 4,096 B -> 16,384 B, +12.0 KiB (+300.0%)`.
pub(crate) fn reason(test: &ChangedTest, reason: &Reason<'_>) -> String {
    match reason {
        Reason::Figure(figure) => format!(
            "{} {} {} -> {}, {}",
            figure.space,
            figure.figure,
            value(figure, figure.base),
            value(figure, figure.head),
            difference(figure)
        ),
        Reason::Finding(code) if test.new_findings.contains(code) => {
            format!("new finding: {}", code.name())
        }
        Reason::Finding(code) => format!("no longer found: {}", code.name()),
        Reason::Status(status) if status.fails() => "the test fails".to_owned(),
        Reason::Status(_) => "the test does not fail any more".to_owned(),
    }
}

/// The line of a step, while the bisection runs.
pub(crate) fn print_step(number: usize, step: &BisectStep) {
    eprint_line!("{}", step_line(number, step));
}

fn step_line(number: usize, step: &BisectStep) -> String {
    let word = match step.outcome {
        BisectOutcome::Good => style::good("good"),
        BisectOutcome::Bad => style::error("bad "),
        BisectOutcome::Skipped => style::warning("skip"),
    };
    let name = short(&step.name);
    let line = format!("[{number}] {word} {name} {}", escape::line(&step.subject));
    match step.reason.as_str() {
        "" => line,
        reason => format!("{line}: {}", escape::line(reason)),
    }
}

/// Ten digits of a commit.
fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

pub(crate) fn print(bisection: &Bisection) {
    print_lines(&lines(bisection));
}

fn lines(bisection: &Bisection) -> Vec<String> {
    let Bisection { culprits, comparison, .. } = bisection;
    let (word, names): (&str, Vec<String>) = match culprits {
        Culprits::Commits(commits) => ("commit", commits.iter().map(commit_line).collect()),
        Culprits::Updates(updates) => ("update", updates.iter().map(update_line).collect()),
    };
    let names: Vec<String> = names.iter().map(|name| escape::line(name)).collect();
    let mut lines = match names.as_slice() {
        [name] => vec![style::strong(&format!("first bad {word}: {name}"))],
        names => {
            let title = format!(
                "one of these {} is the first bad one, because those in between could not be \
                 measured:",
                counted(names.len() as u64, word, &format!("{word}s"))
            );
            let names = names.iter().map(|name| format!("  {name}"));
            std::iter::once(style::strong(&title)).chain(names).collect()
        }
    };
    lines.extend(comparison.changed.iter().flat_map(changed_lines));
    lines.push(counts(bisection));
    lines
}

fn commit_line(commit: &Commit) -> String {
    let Commit { commit, subject, author, date } = commit;
    format!("{} {subject} ({author}, {date})", short(commit))
}

fn update_line(update: &Update) -> String {
    let Update { package, from, to, .. } = update;
    format!("{package} {from} -> {to}")
}

/// `20 commits from v1 to HEAD, 6 builds, 1 of them skipped`.
fn counts(bisection: &Bisection) -> String {
    let Bisection { good, bad, range, culprits, steps, builds, .. } = bisection;
    let range = *range as u64;
    let range = match culprits {
        Culprits::Commits(_) => counted(range, "commit", "commits"),
        Culprits::Updates(_) => counted(range, "update", "updates"),
    };
    let builds = counted(*builds as u64, "build", "builds");
    let skipped = steps.iter().filter(|step| step.outcome == BisectOutcome::Skipped).count();
    let skipped = match skipped {
        0 => String::new(),
        skipped => format!(", {} of them skipped", exact(skipped as u64)),
    };
    let line = format!("{range} from {good} to {bad}, {builds}{skipped}");
    escape::line(&line)
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "bisection")]
struct BisectionLine<'a> {
    version: u32,
    good: &'a str,
    bad: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commits: Option<&'a [Commit]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updates: Option<&'a [Update]>,
    range: usize,
    builds: usize,
    steps: &'a [BisectStep],
    changed: &'a [ChangedTest],
}

/// One line of JSON. Fields can be added, but must not be changed.
pub(crate) fn print_json(bisection: &Bisection) {
    let Bisection { good, bad, range, culprits, steps, builds, comparison } = bisection;
    let (commits, updates) = match culprits {
        Culprits::Commits(commits) => (Some(commits.as_slice()), None),
        Culprits::Updates(updates) => (None, Some(updates.as_slice())),
    };
    json::print(&BisectionLine {
        version: VERSION,
        good,
        bad,
        commits,
        updates,
        range: *range,
        builds: *builds,
        steps,
        changed: &comparison.changed,
    });
}
