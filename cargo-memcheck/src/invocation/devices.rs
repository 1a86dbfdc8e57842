//! The requested devices, from the flag, the variable or the configuration. `build::leg` resolves
//! them to the devices of this machine.

use memcheck_core::device::{Request, RequestError};
use memcheck_core::machine::{Machine, MachineError};
use memcheck_core::wire::exit;

use crate::system::error::CommandError;

pub(crate) const DEFAULT_MACHINE: &str = "h200";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DeviceError {
    #[error(transparent)]
    Spelling(#[from] RequestError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("--device {device}: {why}")]
    NoGpu {
        device: String,
        /// The missing part.
        why: String,
    },
}

impl CommandError for DeviceError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Spelling(_) => exit::USAGE,
            Self::Machine(error) => error.exit_code(),
            Self::NoGpu { .. } => exit::NO_DEVICE,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Machine(error) => error.hint(),
            Self::NoGpu { .. } => {
                Some("`--device sim` needs no GPU, no driver and no CUDA toolkit".to_owned())
            }
            Self::Spelling(_) => None,
        }
    }
}

impl CommandError for MachineError {
    fn exit_code(&self) -> u8 {
        exit::USAGE
    }

    fn hint(&self) -> Option<String> {
        Self::hint(self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceSource {
    Flag,
    Environment,
    Configuration,
    Archive,
    Default,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedDevices {
    pub(crate) requests: Vec<Request>,
    pub(crate) by: DeviceSource,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Probe {
    #[default]
    All,
    /// The tests see the GPU of another machine.
    Compiler,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Each test runs on one of the GPUs.
    #[default]
    Together,
    /// The command measures the room on each GPU.
    Apart,
}

pub(crate) fn parse_list<'a>(
    texts: impl Iterator<Item = &'a str>,
) -> Result<Vec<Request>, DeviceError> {
    texts
        .map(|text| {
            let request = text.trim().parse()?;
            check(&request)?;
            Ok(request)
        })
        .collect()
}

pub(crate) fn check(request: &Request) -> Result<(), DeviceError> {
    match request {
        Request::Sim(Some(machine)) => check_machine(machine),
        _ => Ok(()),
    }
}

pub(crate) fn check_machine(machine: &str) -> Result<(), DeviceError> {
    machine.parse::<Machine>().map(drop).map_err(DeviceError::from)
}
