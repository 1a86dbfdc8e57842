//! The state of a file, by which a change of its contents is noticed without reading it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Includes the ctime, which no program can set, so that the state differs even if an older file
/// replaced this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum FileState {
    Absent,
    There { modified: (i64, i64), changed: (i64, i64), size: u64, inode: u64 },
}

impl FileState {
    /// `None` if the state cannot be read; it never counts as unchanged.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        match fs::metadata(path) {
            Ok(found) => Some(Self::from(&found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Self::Absent),
            // A parent of the path is a file.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Some(Self::Absent),
            Err(_) => None,
        }
    }

    /// When the contents were changed last, since the epoch, as far as programs can set it.
    pub(super) fn modified(self) -> Duration {
        match self {
            Self::Absent => Duration::ZERO,
            Self::There { modified, .. } => duration(modified),
        }
    }

    /// When the file was written, moved, or given another time or permission, since the epoch.
    pub(super) fn changed(self) -> Duration {
        match self {
            Self::Absent => Duration::ZERO,
            Self::There { changed, .. } => duration(changed),
        }
    }
}

impl From<&fs::Metadata> for FileState {
    fn from(found: &fs::Metadata) -> Self {
        Self::There {
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
            size: found.size(),
            inode: found.ino(),
        }
    }
}

fn duration((seconds, nanos): (i64, i64)) -> Duration {
    let (seconds, nanos) = (u64::try_from(seconds), u32::try_from(nanos));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}
