//! What is judged across tests, between the run and its presentation: limits
//! relative to another test, and laws over the cases of one.
//!
//! ```text
//! tests of a leg -> needs    whose figures each test wants, before anything runs
//! outcomes       -> judge    findings and laws, once those figures are there
//! laws           -> snapshot the baseline that keeps them
//! ```
//!
//! A test that wants figures of others is told once all of its leg have ended. The
//! shards of a run leave that to `report --merge`, which has all of them.

mod judge;
mod needs;
mod snapshot;

use std::path::PathBuf;

use memcheck_core::across::Told;
use serde::{Deserialize, Serialize};

pub(crate) use judge::{Judge, Seen, join};
pub(crate) use needs::{Needs, law_baselines, needs};

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
