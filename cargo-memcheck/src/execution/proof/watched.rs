//! The recorded states of files and folders, which tell whether one of them has changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use crate::build::provenance::FileState;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Watched(BTreeMap<PathBuf, Option<FileState>>);

impl Watched {
    /// A file, or a path that does not exist.
    pub(super) fn file(path: &Path) -> Self {
        let mut watched = Self::default();
        watched.add(path);
        watched
    }

    pub(super) fn add(&mut self, path: &Path) {
        self.0.insert(path.to_owned(), FileState::of(path));
    }

    pub(super) fn add_tree(&mut self, path: &Path) {
        WalkDir::new(path).into_iter().flatten().for_each(|entry| self.add(entry.path()));
    }

    pub(super) fn is_unchanged(&self) -> bool {
        self.0.iter().all(|(path, state)| state.is_some() && FileState::of(path) == *state)
    }
}
