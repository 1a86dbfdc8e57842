//! One test on one device: what is run, and what came of it. Whoever runs tests,
//! keeps their results or tells of them speaks of these.

mod across;
#[cfg(test)]
pub(crate) mod example;
mod outcome;

use std::path::PathBuf;

use memcheck_core::limits::Limits;
use memcheck_core::protocol::Entry;
use serde::{Deserialize, Serialize};

use crate::binary::Binary;
use crate::devices::Leg;

pub(crate) use across::{Across, Needs, Other};
pub(crate) use outcome::Outcome;

/// One test on one device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    /// The package.
    pub(crate) package: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// The version of candle-core that it is built with, for the baseline's header.
    pub(crate) candle: String,
    /// The executable.
    pub(crate) binary: Binary,
    /// The test.
    pub(crate) entry: Entry,
    /// The device.
    pub(crate) leg: Leg,
    /// The limits in force.
    pub(crate) limits: Limits,
}
