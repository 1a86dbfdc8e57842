//! The tests that lack nothing but a baseline, which are one section of a Markdown report.

use crate::presentation::presenters::next_step::{NextStep, Snapshots};

#[derive(Debug, Default)]
pub(super) struct NewTests {
    /// The item of each test.
    pub(super) tests: Vec<String>,
    snapshots: Vec<Snapshots>,
    /// The first command of a test without a pending snapshot.
    other: Option<String>,
}

impl NewTests {
    pub(super) fn add(&mut self, item: String, next: Option<NextStep>, command: Option<String>) {
        self.tests.push(item);
        match next {
            Some(NextStep::Review(snapshots)) => self.snapshots.push(snapshots),
            _ if self.other.is_none() => self.other = command,
            _ => {}
        }
    }

    /// The command that shows the pending snapshots of all these tests.
    pub(super) fn command(&self, baselines: &[String]) -> Option<String> {
        Snapshots::joined(&self.snapshots)
            .map(|snapshots| snapshots.review(baselines))
            .or_else(|| self.other.clone())
    }
}
