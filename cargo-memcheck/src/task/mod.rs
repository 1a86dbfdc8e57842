//! One test on one device, and the outcome of its run. The runner, the results and the presenters all use these types.

mod across;
#[cfg(test)]
pub(crate) mod example;
mod outcome;

use std::path::PathBuf;

use memcheck_core::limits::Limits;
use memcheck_core::wire::protocol::Entry;
use serde::{Deserialize, Serialize};

use crate::binary::Binary;
use crate::devices::Leg;

pub(crate) use across::Across;
pub(crate) use outcome::Outcome;

/// One test on one device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) package: String,
    /// The folder of the package.
    pub(crate) folder: PathBuf,
    /// The version of candle-core in the build, for the baseline's header.
    pub(crate) candle: String,
    pub(crate) binary: Binary,
    pub(crate) entry: Entry,
    pub(crate) leg: Leg,
    pub(crate) limits: Limits,
}
