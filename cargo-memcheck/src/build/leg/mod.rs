//! A leg of a run: one device, with a build for it and a run of every test that can run on it.

mod resolve;
#[cfg(test)]
mod tests;

use memcheck_core::device::{Family, Request};
use serde::{Deserialize, Serialize};

use crate::system::gpus::{RealGpu, names};

pub(crate) use resolve::{Found, Gpus, resolve};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum DeviceKind {
    Cpu,
    /// With CUDA, against the simulated toolkit.
    Sim,
    /// With CUDA, against the toolkit of this machine.
    Cuda,
}

/// `auto` is already resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leg {
    /// With its card if it is simulated. `cuda` stands for several real GPUs that the user named.
    pub(crate) device: Request,
    pub(crate) kind: DeviceKind,
    pub(crate) why: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) numbers: Vec<u16>,
    /// Empty if a launcher assigns GPUs, or if no test is run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gpus: Vec<RealGpu>,
}

impl Leg {
    pub(crate) fn new(device: Request, kind: DeviceKind, why: impl Into<String>) -> Self {
        Self { device, kind, why: why.into(), numbers: Vec::new(), gpus: Vec::new() }
    }

    /// Several GPUs have the form that [`memcheck_core::request::variables::DEVICE`] accepts:
    /// `cuda:0,cuda:2`.
    pub(crate) fn name(&self) -> String {
        let requests: Vec<String> = self.requests().iter().map(Request::to_string).collect();
        requests.join(",")
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        match self.numbers.as_slice() {
            [] => vec![self.device.clone()],
            numbers => numbers.iter().map(|&number| Request::Cuda(Some(number))).collect(),
        }
    }

    fn join(&mut self, other: Self) {
        // A leg without numbers has all GPUs already.
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

    pub(crate) fn family(&self) -> Family {
        match self.kind {
            DeviceKind::Cpu => Family::Cpu,
            DeviceKind::Sim | DeviceKind::Cuda => Family::Cuda,
        }
    }
}
