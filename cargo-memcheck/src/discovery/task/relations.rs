//! The part of an outcome that concerns other tests: the figures that a test needs from other
//! tests, and the findings of the comparison. `crate::execution::relations` fills it in.

use std::path::PathBuf;

use memcheck_core::runs::relations::Needs;
use memcheck_core::shape::ScalingReport;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Relations {
    /// `report --merge` does the comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left: Option<Needs>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) laws: Vec<ScalingReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}
