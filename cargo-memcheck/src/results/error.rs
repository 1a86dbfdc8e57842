//! Why results cannot be told, or not together, and what to do about it.

use std::io;
use std::path::PathBuf;

use memcheck_core::exit;

use super::line::FILE;
use crate::error::Expected;
use crate::options::Partition;

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
    /// A shard that ended before the tests of a device began.
    #[error("{path} holds no results on {1}: that run ended before", path = .0.display())]
    Unstarted(PathBuf, String),
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
            Self::None(_) | Self::Torn(..) | Self::Missing(_) | Self::Unstarted(..) => {
                exit::NOT_MEASURED
            }
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
            Self::Unstarted(..) => "the log of that run has the reason: run this shard again",
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
