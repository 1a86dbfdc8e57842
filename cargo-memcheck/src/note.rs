//! A finding about the workspace rather than about a test: what `bookkeeping`
//! makes and presentations show.

use std::path::PathBuf;

use memcheck_core::finding::{Finding, Level};
use serde::{Deserialize, Serialize};

/// A finding about the workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Note {
    /// The package that it is about.
    pub(crate) package: String,
    /// The file that it is about, if there is one.
    pub(crate) path: Option<PathBuf>,
    /// What was found.
    pub(crate) finding: Finding,
    /// What is done about it: never [`Level::Allow`].
    pub(crate) level: Level,
}
