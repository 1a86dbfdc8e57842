//! The errors of reading and merging results, with hints.

use std::io;
use std::path::PathBuf;

use memcheck_core::wire::exit;

use super::line::FILE;
use crate::invocation::options::Partition;
use crate::system::error::CommandError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultsError {
    #[error("{path} is not a directory", path = .0.display())]
    NoFolder(PathBuf),
    #[error("{0} directories of results were given, but `report` prints one at a time")]
    Several(usize),
    #[error("{path} has no results of a run ({FILE})", path = .0.display())]
    None(PathBuf),
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    #[error("{path}, the results of an earlier run, cannot be removed: {error}", path = .0.display(), error = .1)]
    Kept(PathBuf, io::Error),
    #[error("{path} is cut off or damaged: {why}", path = .0.display(), why = .1)]
    Damaged(PathBuf, String),
    #[error("{why} ({file})", file = .file.display())]
    Incomplete {
        file: PathBuf,
        why: String,
        /// The command of the run.
        command: Option<String>,
    },
    #[error("{path} was written by another version of the tool: {what}", path = .0.display(), what = .1)]
    Version(PathBuf, String),
    #[error("{a} and {b} are not shards of one run: {what}", a = .0.display(), b = .1.display(), what = .2)]
    Different(PathBuf, PathBuf, String),
    #[error("{path} has no results on {1}: that run ended early", path = .0.display())]
    Unstarted(PathBuf, String),
    #[error("{path} has the results of a whole run, not of a shard", path = .0.display())]
    Whole(PathBuf),
    #[error("{part} is in both {a} and {b}", part = .0, a = .1.display(), b = .2.display())]
    Twice(Partition, PathBuf, PathBuf),
    #[error("{test} on {device} is in both {a} and {b}", a = .a.display(), b = .b.display())]
    SameTest {
        test: String,
        device: String,
        /// The folder of one shard.
        a: PathBuf,
        b: PathBuf,
    },
    #[error("the results of {0} are missing")]
    Missing(String),
}

impl CommandError for ResultsError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Io(..) => exit::INTERNAL,
            Self::Kept(..) => exit::REPORT,
            // Missing results must not count as a pass, so that their exit code is that of tests
            // that were not measured.
            Self::None(_)
            | Self::Damaged(..)
            | Self::Incomplete { .. }
            | Self::Missing(_)
            | Self::Unstarted(..) => exit::NOT_MEASURED,
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
            Self::None(_) => {
                "a run writes them from its first test on; a run whose build failed has none"
            }
            Self::Damaged(..) => {
                "the copy is incomplete, or another program has changed it: run this shard again"
            }
            Self::Incomplete { command: Some(command), .. } => {
                return Some(format!("for a verdict about all tests, run `{command}` again"));
            }
            Self::Incomplete { command: None, .. } => {
                "for a verdict about all tests, run them again"
            }
            Self::Unstarted(..) => "the log of that run has the reason: run this shard again",
            Self::Missing(_) => {
                "name the folder of every shard; if a shard ended before its tests, its log has \
                 the reason"
            }
            Self::Version(..) => {
                "run the tests again with this version, or read them with the version that wrote \
                 them; the shards of a run need one version"
            }
            Self::Different(..) => {
                "run all shards of one state of the sources with the same arguments, except the M \
                 of --partition hash:M/N"
            }
            Self::Kept(..) => {
                "they must not be taken for those of this run: make their folder writable, or name \
                 another one with --results"
            }
            Self::Whole(_) => "`cargo memcheck report DIR` prints it; --partition runs a shard",
            Self::Twice(..) | Self::SameTest { .. } => {
                "name each shard once, and give each its own --results"
            }
            Self::NoFolder(_) | Self::Io(..) => return None,
        };
        Some(hint.to_owned())
    }
}
