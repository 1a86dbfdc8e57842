//! The results of a run, kept whole, and read again by `report`: of one run, or
//! of the parts that several machines ran.
//!
//! A folder of results holds one file of JSON lines: what the run was, its
//! devices, a line for each test with all that a presenter is given, the notes,
//! and a last line that says how many there were. Pending snapshots are in it,
//! so that a folder that was carried elsewhere lacks nothing.

mod error;
mod keep;
mod line;
mod merge;
mod pending;
mod read;
mod run;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

pub(crate) use error::ResultsError;
pub(crate) use keep::Keeper;
pub(crate) use line::file;
pub(crate) use merge::{Whole, merge};
pub(crate) use pending::join;
pub(crate) use read::{Results, Test, read};
pub(crate) use run::Run;

/// Removes the results of an earlier run.
pub(crate) fn discard(folder: &Path) -> Result<(), ResultsError> {
    match std::fs::remove_file(file(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ResultsError::Io(file(folder), error))
        }
        _ => Ok(()),
    }
}
