//! The part of an outcome that concerns other tests: the figures that a test needs from other tests, and the findings of the comparison.
//! `crate::execution::relations` fills it in.

use std::path::PathBuf;

use memcheck_core::runs::relations::Needs;
use memcheck_core::shape::ScalingReport;
use serde::{Deserialize, Serialize};

/// The findings across tests, apart from the test's own outcome.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Relations {
    /// The needed figures, if the comparison is left to `report --merge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left: Option<Needs>,
    /// The laws of the test's cases.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) laws: Vec<ScalingReport>,
    /// The baseline that stores the laws.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<PathBuf>,
    /// The pending snapshot of the laws that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<PathBuf>,
    /// The text of the pending snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}
