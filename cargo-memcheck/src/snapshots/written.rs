//! Whether the test of a baseline is still written, which only sources say.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::SnapshotFile;

/// What the source file that a baseline names has of its test.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    /// A function of the test's name.
    pub(crate) test: bool,
    /// One of the name before it: of a case, that is the function.
    pub(crate) function: bool,
}

impl Written {
    /// Looks into the sources below `root`.
    pub(crate) fn of(file: &SnapshotFile, root: &Path) -> Self {
        let Ok(snapshot) = insta::Snapshot::from_file(&file.path) else { return Self::default() };
        let text = snapshot.metadata().source().map(|source| root.join(source));
        let Some(Ok(text)) = text.map(std::fs::read_to_string) else { return Self::default() };
        let mut names = file.test.rsplit("::");
        let mut next = || names.next().is_some_and(|name| text.contains(&format!("fn {name}(")));
        Self { test: next(), function: next() }
    }
}
