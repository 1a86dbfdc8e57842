//! One test on one device, and the outcome of its run. The runner, the results and the presenters
//! all use these types.

#[cfg(any(test, fuzzing))]
pub(crate) mod example;
mod outcome;
mod relations;
mod subject;

use std::path::PathBuf;

use memcheck_core::device::Family;
use memcheck_core::limits::Limits;
use serde::{Deserialize, Serialize};

use crate::build::leg::Leg;
use crate::system::binary::Binary;

pub(crate) use outcome::TestOutcome;
pub(crate) use relations::Relations;
pub(crate) use subject::TestSubject;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) package: String,
    pub(crate) folder: PathBuf,
    /// The version of candle-core in the build, for the baseline's header.
    pub(crate) candle: String,
    /// The package's features for this device, for the same header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) features: Option<String>,
    pub(crate) binary: Binary,
    pub(crate) subject: TestSubject,
    pub(crate) leg: Leg,
    pub(crate) limits: Limits,
}

impl Task {
    pub(crate) fn name(&self) -> &str {
        self.subject.name()
    }

    pub(crate) fn family(&self) -> Family {
        self.subject.family_on(self.leg.family())
    }
}
