//! One device of a run, and which of those that were asked for are one.

use memcheck_core::device::{Family, Request};
use serde::{Deserialize, Serialize};

use crate::gpus::{Gpu, names};

/// What kind of build a leg needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// No CUDA.
    Cpu,
    /// CUDA, against the simulated toolkit.
    Sim,
    /// CUDA, against the toolkit of this machine.
    Cuda,
}

/// What becomes of several real GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// They are one device, and each test runs on one of them.
    Together,
    /// Each that is named is a device of its own: what it has room for is asked.
    Apart,
}

/// One device that tests run on. Never `auto`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leg {
    /// The device, with its card where it is simulated; of several real GPUs
    /// that were named, all of them.
    pub(crate) device: Request,
    /// The build that it needs.
    pub(crate) kind: Kind,
    /// Why it was chosen, for people.
    pub(crate) why: String,
    /// Real GPUs that were named by their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) numbers: Vec<u16>,
    /// The GPUs that its tests are given. None where a launcher gives them, or
    /// where nothing is run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gpus: Vec<Gpu>,
}

impl Leg {
    /// A device that is no real GPU, or one of which nothing is known.
    pub(crate) fn new(device: Request, kind: Kind, why: impl Into<String>) -> Self {
        Self { device, kind, why: why.into(), numbers: Vec::new(), gpus: Vec::new() }
    }

    /// The device as it is printed: `sim:h200`. Several GPUs that were named are
    /// written as [`memcheck_core::variables::DEVICE`] takes them: `cuda:0,cuda:2`.
    pub(crate) fn name(&self) -> String {
        let requests: Vec<String> = self.requests().iter().map(Request::to_string).collect();
        requests.join(",")
    }

    /// The devices that were asked for, which make this one.
    pub(crate) fn requests(&self) -> Vec<Request> {
        match self.numbers.as_slice() {
            [] => vec![self.device.clone()],
            numbers => numbers.iter().map(|&number| Request::Cuda(Some(number))).collect(),
        }
    }

    /// Adds real GPUs that are asked for besides.
    pub(super) fn join(&mut self, other: Self) {
        if self.numbers.is_empty() || other.numbers.iter().any(|n| self.numbers.contains(n)) {
            return;
        }
        if other.numbers.is_empty() {
            *self = other;
            return;
        }
        if !other.gpus.is_empty() {
            self.why = format!("{}, {}", self.why, names(&other.gpus));
        }
        self.numbers.extend(other.numbers);
        self.gpus.extend(other.gpus);
        self.device = Request::Cuda(None);
    }

    /// The family of its baselines.
    pub(crate) fn family(&self) -> Family {
        match self.kind {
            Kind::Cpu => Family::Cpu,
            Kind::Sim | Kind::Cuda => Family::Cuda,
        }
    }
}
