//! An executable that was built, wherever that was: here or for an archive.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One executable.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Binary {
    /// As nextest names it: `app` (unit tests), `app::mem`, `app::bin/tool`.
    pub(crate) id: String,
    /// The index of its package in what was built.
    #[serde(skip)]
    pub(crate) package: usize,
    /// The file.
    #[serde(skip)]
    pub(crate) path: PathBuf,
    /// Variables that cargo would set for it.
    #[serde(skip)]
    pub(crate) environment: Vec<(String, String)>,
}
