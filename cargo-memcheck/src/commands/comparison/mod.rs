//! The commands that compare runs.

mod bisect;
mod compare;
mod history;
mod revisions;

use std::path::PathBuf;

use anyhow::Context;

use crate::discovery::session::Session;
use crate::invocation::cli::ComparisonCommand;
use crate::presentation::history::{self as history_of_runs, HistoryState};
use crate::presentation::results;
use crate::system::error::Failure;

pub(super) fn run(command: &ComparisonCommand) -> Result<u8, Failure> {
    match command {
        ComparisonCommand::Compare(args) => compare::compare(args),
        ComparisonCommand::Bisect(args) => bisect::bisect(args),
        ComparisonCommand::BisectStep(args) => bisect::step(args),
        ComparisonCommand::History(args) => history::history(args),
    }
}

/// Appends the figures of a run that has ended to the history of `--history`. Returns the error.
pub(super) fn append_to_history(session: &Session) -> Option<(PathBuf, anyhow::Error)> {
    let place = session.options.history.as_ref()?;
    let root = session.workspace.root();
    let state = HistoryState::of(root, session.commit());
    match results::read(&session.results_directory()).context("reading the results") {
        Ok(stored) => history_of_runs::append(place, root, &stored.tests, &state).err(),
        Err(error) => Some((place.to_string().into(), error)),
    }
}
