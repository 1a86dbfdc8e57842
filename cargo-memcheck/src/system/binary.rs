//! An executable that cargo built, on this machine or for an archive.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Binary {
    /// Id in the form of nextest: `app` (unit tests), `app::mem`, `app::bin/tool`.
    pub(crate) id: String,
    /// Index of its package in the packages of the session.
    #[serde(skip)]
    pub(crate) package: usize,
    #[serde(skip)]
    pub(crate) path: PathBuf,
    /// Variables that cargo would set for it.
    #[serde(skip)]
    pub(crate) environment: Vec<(String, String)>,
}
