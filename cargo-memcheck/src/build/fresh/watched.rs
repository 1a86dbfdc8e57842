//! The recorded states of files and folders, which tell whether one of them has changed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The greatest delay of a file system's clock: a file gets the time of the latest tick.
const TICK: Duration = Duration::from_millis(100);
const MOST_ENTRIES: usize = 20_000;

/// Includes the ctime, which no program can set, so that the state differs even if an older file
/// replaced this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum FileState {
    Absent,
    There { modified: (i64, i64), changed: (i64, i64), size: u64, inode: u64 },
}

impl FileState {
    /// `None` if the state cannot be read; it never counts as unchanged.
    pub(super) fn of(path: &Path) -> Option<Self> {
        match fs::metadata(path) {
            Ok(found) => Some(Self::There {
                modified: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
                size: found.size(),
                inode: found.ino(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Self::Absent),
            // A parent of the path is a file.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Some(Self::Absent),
            Err(_) => None,
        }
    }

    /// The later of the two times, since the epoch.
    fn time(self) -> Duration {
        let of = |(seconds, nanos): (i64, i64)| {
            let (seconds, nanos) = (u64::try_from(seconds), u32::try_from(nanos));
            Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
        };
        match self {
            Self::Absent => Duration::ZERO,
            Self::There { modified, changed, .. } => of(modified).max(of(changed)),
        }
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Watched {
    inputs: BTreeMap<PathBuf, Option<FileState>>,
    outputs: BTreeMap<PathBuf, Option<FileState>>,
}

impl Watched {
    /// A file, the entries of a folder, or a path that does not exist.
    pub(crate) fn add(&mut self, path: &Path) {
        if !self.inputs.contains_key(path) {
            self.inputs.insert(path.to_owned(), FileState::of(path));
        }
    }

    pub(crate) fn add_output(&mut self, path: &Path) {
        self.outputs.insert(path.to_owned(), FileState::of(path));
    }

    /// Targets are `x.rs` and `x/main.rs`.
    pub(crate) fn add_targets(&mut self, folder: &Path) {
        self.add(folder);
        for entry in entries(folder).filter(|path| path.is_dir()) {
            self.add(&entry.join("main.rs"));
        }
    }

    pub(crate) fn add_members(&mut self, folder: &Path) {
        self.add(folder);
        for entry in entries(folder).filter(|path| path.is_dir()) {
            self.add(&entry.join("Cargo.toml"));
        }
    }

    /// `false` if the tree has more than [`MOST_ENTRIES`] entries.
    pub(crate) fn add_tree(&mut self, path: &Path) -> bool {
        let mut open = vec![path.to_owned()];
        let mut count = 0;
        while let Some(path) = open.pop() {
            self.add(&path);
            count += 1;
            if count > MOST_ENTRIES {
                return false;
            }
            open.extend(entries(&path));
        }
        true
    }

    pub(crate) fn is_unchanged(&self) -> bool {
        let is_same = |(path, state): (&PathBuf, &Option<FileState>)| {
            state.is_some() && FileState::of(path) == *state
        };
        self.inputs.iter().chain(&self.outputs).all(is_same)
    }

    /// With a margin of [`TICK`].
    pub(super) fn are_older_than(&self, began: SystemTime) -> bool {
        let began = began.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(TICK);
        self.inputs.values().all(|state| state.is_some_and(|state| state.time() < began))
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}
