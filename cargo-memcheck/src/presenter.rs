//! What is told of a run, and to whom: the events that presenters are given, and
//! results are kept of.

use memcheck_core::protocol::Progress;

use crate::devices::Leg;
use crate::note::Note;
use crate::tally::Tally;
use crate::task::{Outcome, Task};

/// Somebody who is told what happens. What is not overridden is not of interest.
pub(crate) trait Presenter {
    /// The tests of a device begin.
    fn leg_started(&mut self, _leg: &Leg, _tests: usize) {}
    /// A test has started.
    fn test_started(&mut self, _task: &Task) {}
    /// A test is here.
    fn progress(&mut self, _task: &Task, _progress: &Progress) {}
    /// A test has ended, or is ignored.
    fn test_finished(&mut self, _task: &Task, _outcome: &Outcome) {}
    /// The tests of a device have ended, with these counts.
    fn leg_finished(&mut self, _leg: &Leg, _tally: &Tally) {}
    /// Something was found about the workspace.
    fn note(&mut self, _note: &Note) {}
    /// All is over.
    fn finished(&mut self, _tally: &Tally, _exit_code: u8) {}
}

/// A report in a file. It is told everything like any other presenter, and
/// then asked for its text.
pub(crate) trait Report: Presenter {
    /// The whole text.
    fn text(&self) -> anyhow::Result<Vec<u8>>;
}
