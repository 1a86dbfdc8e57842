//! The results of a run or of its shards, which `report` reads. A file of JSON lines has a
//! description of the run, its devices, the tests with all that a presenter receives, the notes,
//! and at last the number of tests. It grows test by test; without its last line, the run has not
//! ended. It has the pending snapshots too, so that the folder can be copied to another machine.

mod error;
#[cfg(test)]
mod formats;
mod in_file;
mod last;
mod line;
mod merge;
mod pending_snapshots;
mod read;
mod relations;
mod replay;
mod run;
mod running;
mod store;
#[cfg(test)]
mod tests;

use std::path::Path;

pub(crate) use error::ResultsError;
pub(crate) use in_file::read_in_file;
pub(crate) use last::{failed_tests, forget_failed, ranges, test_names};
pub(crate) use line::file;
pub(crate) use merge::{MergedRun, merge};
pub(crate) use pending_snapshots::join;
#[cfg(any(test, fuzzing))]
pub(crate) use read::parse;
pub(crate) use read::{Results, Test, read};
pub(crate) use relations::judge_relations;
pub(crate) use replay::{Replayed, replay};
pub(crate) use run::{RunDescription, selected};
pub(crate) use store::Store;

use crate::system::files;

/// Removes the results of an earlier run, but not the names of its tests that failed.
pub(crate) fn discard(folder: &Path) -> Result<(), ResultsError> {
    // No run may fail for what only `--failed` reads.
    let _ = last::keep_failed(folder);
    running::discard(folder);
    files::remove(&file(folder)).map_err(|error| ResultsError::Kept(file(folder), error))
}
