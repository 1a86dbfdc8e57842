//! The results of a run, kept whole, and read again by `report`: of one run, or
//! of the parts that several machines ran.
//!
//! A folder of results holds one file of JSON lines: what the run was, its
//! devices, a line for each test with all that a presenter is given, the notes,
//! and a last line that says how many there were. Pending snapshots are in it,
//! so that a folder that was carried elsewhere lacks nothing.

mod keep;
mod merge;
mod pending;
mod read;
mod run;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use memcheck_core::exit;
use serde::{Deserialize, Serialize};

use crate::cli::CargoFlags;
use crate::devices::Leg;
use crate::error::Expected;
use crate::note::Note;
use crate::options::Partition;
use crate::session::Session;
use crate::workspace::Places;

pub(crate) use keep::Keeper;
pub(crate) use merge::{Whole, merge};
pub(crate) use pending::join;
pub(crate) use read::{Results, Test, read};
pub(crate) use run::{Run, commit};

/// Version of the file.
const VERSION: u32 = 1;
/// The file in a folder of results.
const FILE: &str = "results.jsonl";

/// One line of the file; a test is written and read as different types.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line<T> {
    /// The first.
    Run(Box<Run>),
    /// The tests of a device begin.
    Leg { leg: Leg, tests: usize },
    /// A test has ended, or is ignored.
    Test(T),
    /// A finding about the workspace.
    Note(Box<Note>),
    /// The last.
    End(End),
}

/// A test with all that is known of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept<Task, Outcome> {
    pub(crate) task: Task,
    pub(crate) outcome: Outcome,
    /// The text of its pending snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<String>,
}

/// What is known at the end only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Lines of tests.
    tests: usize,
    /// As the counts of the summary.
    elsewhere: usize,
    not_run: usize,
    interrupted: bool,
    /// The exit code, but for reports that could not be written.
    exit_code: u8,
    /// Wall-clock time of the run.
    seconds: f64,
}

/// Why results cannot be told, or not together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultsError {
    /// No such folder.
    #[error("{path} is not a directory", path = .0.display())]
    NoFolder(PathBuf),
    /// More folders than one, and nothing said of joining.
    #[error("there are {0} directories of results, and one is shown at a time")]
    Several(usize),
    /// A folder without results.
    #[error("{path} holds no results of a run ({FILE})", path = .0.display())]
    None(PathBuf),
    /// It could not be read or written.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    /// Half a file, or no such file at all.
    #[error("{path} is cut off or damaged: {why}", path = .0.display(), why = .1)]
    Torn(PathBuf, String),
    /// Written by another version.
    #[error("{path} was written by another version of the tool: {what}", path = .0.display(), what = .1)]
    Version(PathBuf, String),
    /// Shards that are not of one run.
    #[error("{a} and {b} are not shards of one run: {what}", a = .0.display(), b = .1.display(), what = .2)]
    Different(PathBuf, PathBuf, String),
    /// Several folders of which one is not that of a shard.
    #[error("{path} holds the results of a whole run: there is nothing to merge it with", path = .0.display())]
    Whole(PathBuf),
    /// The same shard twice.
    #[error("{part} is in both {a} and {b}", part = .0, a = .1.display(), b = .2.display())]
    Twice(Partition, PathBuf, PathBuf),
    /// The same test in two shards.
    #[error("{test} on {device} is in both {a} and {b}", a = .a.display(), b = .b.display())]
    SameTest {
        /// The test, with its binary.
        test: String,
        /// The device.
        device: String,
        /// A folder.
        a: PathBuf,
        /// The other.
        b: PathBuf,
    },
    /// Shards that nobody named.
    #[error("the results of {0} are missing")]
    Missing(String),
}

impl Expected for ResultsError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Io(..) => exit::INTERNAL,
            // Tests that nobody knows anything of were not measured.
            Self::None(_) | Self::Torn(..) | Self::Missing(_) => exit::NOT_MEASURED,
            Self::NoFolder(_)
            | Self::Several(_)
            | Self::Version(..)
            | Self::Different(..)
            | Self::Whole(_)
            | Self::Twice(..)
            | Self::SameTest { .. } => exit::USAGE,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Several(_) => "--merge joins the shards of one run",
            Self::None(_) => "a run leaves them when it ends; one that did not build has none",
            Self::Torn(..) => "the run was killed, or the copy is incomplete: run this shard again",
            Self::Missing(_) => {
                "name the folder of every shard; one that ended before its tests says why in its log"
            }
            Self::Version(..) => "use the same version of cargo-memcheck everywhere",
            Self::Different(..) => {
                "run all shards of one state of the sources with the same arguments, but for the \
                 M of --partition hash:M/N"
            }
            Self::Whole(_) => {
                "`cargo memcheck report DIR` shows it; a shard is run with --partition"
            }
            Self::Twice(..) | Self::SameTest { .. } => {
                "name each shard once, and give each a --results of its own"
            }
            Self::NoFolder(_) | Self::Io(..) => return None,
        };
        Some(hint.to_owned())
    }
}

/// Where the results of a run are kept.
pub(crate) fn folder(session: &Session) -> PathBuf {
    let own = || match &session.archive {
        // What was extracted may be temporary, and cargo is not asked.
        Some(_) => Places::here(&CargoFlags::default()).own_directory(),
        None => session.workspace.own_directory(),
    };
    session.options.results.clone().unwrap_or_else(|| default(&own()))
}

/// Where they are kept unless somebody says otherwise.
pub(crate) fn default(own_directory: &Path) -> PathBuf {
    own_directory.join("results")
}

/// Where a run of an archive leaves pending snapshots, below the folder of its
/// results. Tests are started elsewhere, so it is absolute.
pub(crate) fn pending_directory(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()).join("pending")
}

/// The file in a folder of results.
pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Removes the results of an earlier run.
pub(crate) fn discard(folder: &Path) -> Result<(), ResultsError> {
    match std::fs::remove_file(file(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ResultsError::Io(file(folder), error))
        }
        _ => Ok(()),
    }
}
