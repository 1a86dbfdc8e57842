//! The part of an outcome that concerns other tests: the figures that a test needs from other tests, and the findings of the comparison.
//! `crate::across` fills it in.

use std::path::PathBuf;

use memcheck_core::law::Sizes;
use memcheck_core::shape::ScalingReport;
use serde::{Deserialize, Serialize};

/// Another test, and the path of its baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Other {
    /// The test's path.
    pub(crate) test: String,
    /// The path of its baseline.
    pub(crate) snapshot: PathBuf,
}

/// The figures that a test needs from other tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Needs {
    /// The test that the peak is relative to.
    pub(crate) partner: Option<Other>,
    /// The cases from which the laws are derived, the smallest first. Empty unless the test is the largest of these cases.
    pub(crate) members: Vec<(Sizes, Other)>,
    /// The baseline of these laws.
    pub(crate) law: Option<PathBuf>,
}

impl Needs {
    /// Returns every path, so that the caller can change it.
    pub(crate) fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let others = self.members.iter_mut().map(|(_, other)| other).chain(&mut self.partner);
        others.map(|other| &mut other.snapshot).chain(&mut self.law)
    }
}

/// The findings across tests, apart from the test's own outcome.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Across {
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
