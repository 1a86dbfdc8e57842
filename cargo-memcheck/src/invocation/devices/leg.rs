//! One device of a run, and how several requested GPUs form one device.

use memcheck_core::device::{Family, Request};
use serde::{Deserialize, Serialize};

use crate::system::gpus::{RealGpu, names};

/// The kind of build that a leg requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum DeviceKind {
    /// Without CUDA.
    Cpu,
    /// With CUDA, against the simulated toolkit.
    Sim,
    /// With CUDA, against the toolkit of this machine.
    Cuda,
}

/// How a command uses several real GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// They are one device, and each test runs on one of them.
    #[default]
    Together,
    /// Each named GPU is a separate device, because the command measures the room on each of them.
    Apart,
}

/// One device that tests run on. `auto` is already resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leg {
    /// The device, with its card if it is simulated. `cuda` stands for several real GPUs that the user named.
    pub(crate) device: Request,
    pub(crate) kind: DeviceKind,
    /// The reason for the choice, for messages.
    pub(crate) why: String,
    /// Numbers of the real GPUs that the user named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) numbers: Vec<u16>,
    /// The GPUs that tests can be assigned to. Empty if a launcher assigns GPUs, or if no test is run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gpus: Vec<RealGpu>,
}

impl Leg {
    /// Creates a leg without GPUs.
    pub(crate) fn new(device: Request, kind: DeviceKind, why: impl Into<String>) -> Self {
        Self { device, kind, why: why.into(), numbers: Vec::new(), gpus: Vec::new() }
    }

    /// Returns the device as it is printed: `sim:h200`. Several named GPUs have the form that
    /// [`memcheck_core::request::variables::DEVICE`] accepts: `cuda:0,cuda:2`.
    pub(crate) fn name(&self) -> String {
        let requests: Vec<String> = self.requests().iter().map(Request::to_string).collect();
        requests.join(",")
    }

    /// Returns the requested devices that form this one.
    pub(crate) fn requests(&self) -> Vec<Request> {
        match self.numbers.as_slice() {
            [] => vec![self.device.clone()],
            numbers => numbers.iter().map(|&number| Request::Cuda(Some(number))).collect(),
        }
    }

    /// Adds real GPUs that are requested as well.
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

    /// Returns the device family of its baselines.
    pub(crate) fn family(&self) -> Family {
        match self.kind {
            DeviceKind::Cpu => Family::Cpu,
            DeviceKind::Sim | DeviceKind::Cuda => Family::Cuda,
        }
    }
}
