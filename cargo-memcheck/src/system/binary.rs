//! An executable that cargo built, on this machine or for an archive.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Binary {
    /// In the form of nextest: `app` (unit tests), `app::mem`, `app::bin/tool`.
    pub(crate) id: String,
    #[serde(skip)]
    pub(crate) package: usize,
    #[serde(skip)]
    pub(crate) path: PathBuf,
    #[serde(skip)]
    pub(crate) environment: Vec<(String, String)>,
}
