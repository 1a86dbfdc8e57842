//! What people and machines are told. Nothing here decides anything.
//!
//! stdout carries results for machines only; whatever people read goes to
//! stderr. Each presenter is given the same events, in the order of the run.

mod annotations;
mod beside;
pub(crate) mod estimate;
#[cfg(test)]
mod example;
mod failure;
mod findings;
pub(crate) mod fit;
mod flamegraph;
mod html;
pub(crate) mod json;
mod junit;
mod markdown;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod style;
mod summary;
mod terminal;
mod told;
mod trace;

use memcheck_core::protocol::Progress;

use crate::devices::Leg;
use crate::note::Note;
use crate::run::{Outcome, Task};
use crate::tally::Tally;

pub(crate) use failure::failure;
pub(crate) use json::JsonLines;
pub(crate) use summary::Unselected;
pub(crate) use told::Told;

use annotations::GithubAnnotations;
use flamegraph::FlameGraph;
use html::Html;
use junit::Junit;
use markdown::Markdown;
use terminal::Terminal;
use trace::Trace;

/// Prints a line for people, on stderr, with colours where it shows them.
macro_rules! say {
    ($($text:tt)*) => { anstream::eprintln!($($text)*) };
}
pub(crate) use say;

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
