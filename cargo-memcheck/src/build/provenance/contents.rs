//! The contents of input files. A file is read again only if its state has changed since it was
//! read.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memcheck_core::input;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{FileState, TICK, since_epoch};

/// Larger files, such as weights, are compared by their states, because reading them would delay
/// every first run. A change that leaves the contents the same then costs a build.
const LARGEST_READ: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::build) enum Content {
    Absent,
    Folder,
    /// SHA-256.
    File(String),
    Large(FileState),
}

/// A file as it was when it was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::build) struct ReadFile {
    pub(super) content: Content,
    /// `None` if the file can have changed after it was read without another state.
    pub(super) state: Option<FileState>,
}

pub(super) struct InputContents {
    known: HashMap<PathBuf, ReadFile>,
    /// Those of this run.
    now: HashMap<PathBuf, ReadFile>,
}

impl InputContents {
    pub(super) fn new(known: HashMap<PathBuf, ReadFile>) -> Self {
        Self { known, now: HashMap::new() }
    }

    pub(super) fn of(&mut self, path: &Path) -> ReadFile {
        if let Some(read) = self.now.get(path) {
            return read.clone();
        }
        let state = FileState::of(path);
        let known = self.known.get(path).filter(|known| known.state.is_some());
        let read = match known.filter(|known| known.state == state) {
            Some(known) => known.clone(),
            None => read(path, state),
        };
        // PERF: many artifacts have the same inputs.
        self.now.insert(path.to_owned(), read.clone());
        read
    }
}

fn read(path: &Path, state: Option<FileState>) -> ReadFile {
    // A change within the same tick of the clock would leave the same state.
    let read = since_epoch(SystemTime::now()).saturating_sub(TICK);
    let settled = state.filter(|state| state.changed() < read);
    let content = match (state, fs::metadata(path)) {
        (Some(FileState::Absent), _) | (_, Err(_)) => Content::Absent,
        (_, Ok(found)) if found.is_dir() => Content::Folder,
        (Some(state), Ok(found)) if !found.is_file() || found.len() > LARGEST_READ => {
            Content::Large(state)
        }
        _ => hash(path).unwrap_or(Content::Absent),
    };
    ReadFile { content, state: settled }
}

fn hash(path: &Path) -> io::Result<Content> {
    let mut hasher = Sha256::new();
    hasher.update(input::read(path, LARGEST_READ)?);
    let hash = hasher.finalize();
    Ok(Content::File(hash.iter().map(|byte| format!("{byte:02x}")).collect()))
}
