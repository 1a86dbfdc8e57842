//! The change that `bisect` searches for.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The changes of a figure that make a revision bad.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum BadChange {
    /// The figure is higher.
    #[default]
    Rise,
    /// The figure is lower.
    Fall,
    /// The figure is another one.
    Any,
}
