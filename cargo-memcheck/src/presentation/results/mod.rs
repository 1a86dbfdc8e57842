//! The complete results of a run or of its shards, which `report` reads. A file of JSON lines has a
//! description of the run, its devices, the tests with all that a presenter receives, the notes,
//! and at last the number of tests. It has the pending snapshots too, so that the folder can be
//! copied to another machine.

mod error;
mod keep;
mod line;
mod merge;
mod pending;
mod read;
mod relations;
mod run;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

pub(crate) use error::ResultsError;
pub(crate) use keep::Keeper;
pub(crate) use line::file;
pub(crate) use merge::{MergedRun, merge};
pub(crate) use pending::join;
pub(crate) use read::{Results, Test, read};
pub(crate) use relations::judge_relations;
pub(crate) use run::RunDescription;

pub(crate) fn discard(folder: &Path) -> Result<(), ResultsError> {
    match std::fs::remove_file(file(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ResultsError::Io(file(folder), error))
        }
        _ => Ok(()),
    }
}
