//! A finding about the workspace instead of a test. `bookkeeping` creates notes, and the presenters
//! show them.

use std::path::PathBuf;

use memcheck_core::judgement::finding::{Finding, Level};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) package: String,
    pub(crate) path: Option<PathBuf>,
    pub(crate) finding: Finding,
    /// Never [`Level::Allow`].
    pub(crate) level: Level,
}
