//! What an outcome has of other tests: whose figures it wants, and what was found
//! once they were there. `crate::across` fills it in.

use std::path::PathBuf;

use memcheck_core::law::Sizes;
use memcheck_core::shape::Told;
use serde::{Deserialize, Serialize};

/// Another test, and where its baseline lies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Other {
    /// Its path.
    pub(crate) test: String,
    /// Its baseline.
    pub(crate) snapshot: PathBuf,
}

/// Whose figures a test wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Needs {
    /// The test that its peak is relative to.
    pub(crate) partner: Option<Other>,
    /// The cases that its laws are made of, the smallest first, where it is the
    /// largest of them that runs; else empty.
    pub(crate) members: Vec<(Sizes, Other)>,
    /// The baseline of these laws.
    pub(crate) law: Option<PathBuf>,
}

impl Needs {
    /// Every path in it.
    pub(crate) fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let others = self.members.iter_mut().map(|(_, other)| other).chain(&mut self.partner);
        others.map(|other| &mut other.snapshot).chain(&mut self.law)
    }
}

/// What was found across tests, beside the test's own outcome.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Across {
    /// Whose figures are wanted, where that is left to `report --merge`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left: Option<Needs>,
    /// The laws of its cases.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) laws: Vec<Told>,
    /// The baseline that keeps them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<PathBuf>,
    /// The pending snapshot of them that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<PathBuf>,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}
