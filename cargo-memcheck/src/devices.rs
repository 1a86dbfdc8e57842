//! From the devices that are asked for to the legs of a run.
//!
//! A leg is one device: a build of its own, and a run of every test that makes
//! sense there. Real GPUs are one device: tests are spread over those that were
//! asked for. `auto` is resolved here, once, from what the probe found.

mod leg;
#[cfg(test)]
mod tests;

use memcheck_core::device::{Request, RequestError};
use memcheck_core::exit;
use memcheck_core::machine::{Machine, MachineError};

use crate::error::Expected;
use crate::gpus::{Gpu, names};

pub(crate) use leg::{Kind, Leg, Sharing};

/// The simulated machine where nobody names one.
pub(crate) const DEFAULT_MACHINE: &str = "h200";

/// Why a device cannot be run on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DeviceError {
    /// Not one of the spellings.
    #[error(transparent)]
    Spelling(#[from] RequestError),
    /// Not one of the machines.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// No real GPU.
    #[error("--device {device}: {why}")]
    NoGpu {
        /// What was asked for.
        device: String,
        /// What is missing.
        why: String,
    },
}

impl Expected for DeviceError {
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

impl Expected for MachineError {
    fn exit_code(&self) -> u8 {
        exit::USAGE
    }

    fn hint(&self) -> Option<String> {
        Self::hint(self)
    }
}

/// Who asked for the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// `--device`.
    Flag,
    /// `MEMCHECK_DEVICE`.
    Environment,
    /// `device` in the configuration.
    Configuration,
    /// An archive: what it was built for.
    Archive,
    /// Nobody: `auto`.
    Nobody,
}

/// The devices that are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// In the order in which they were named.
    pub(crate) requests: Vec<Request>,
    /// Who named them.
    pub(crate) by: By,
}

/// What there is to run on, as far as it can be told without opening a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The GPUs.
    pub(crate) gpus: Gpus,
    /// Whether a launcher starts the tests.
    pub(crate) launched: bool,
    /// The CUDA compiler, or why there is none.
    pub(crate) nvcc: Result<String, String>,
}

/// The GPUs that tests run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gpus {
    /// Those that the driver lists, or why it does not.
    Here(Result<Vec<Gpu>, String>),
    /// Whatever there is on another machine.
    Elsewhere,
}

/// Reads a list of devices.
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

/// Checks that a device names a machine that can be simulated.
pub(crate) fn check(request: &Request) -> Result<(), DeviceError> {
    match request {
        Request::Sim(Some(machine)) => check_machine(machine),
        _ => Ok(()),
    }
}

/// Checks that a text names a machine.
pub(crate) fn check_machine(machine: &str) -> Result<(), DeviceError> {
    machine.parse::<Machine>().map(drop).map_err(DeviceError::from)
}

/// Turns what is asked for into legs, each device once.
pub(crate) fn resolve(
    asked: &Asked,
    machine: &str,
    lacks: Option<&str>,
    sharing: Sharing,
    found: impl FnOnce() -> Found,
) -> Result<Vec<Leg>, DeviceError> {
    let wants_gpu = |request: &Request| matches!(request, Request::Auto | Request::Cuda(_));
    // Probing starts processes: only where the answer matters.
    let found = if asked.requests.iter().any(wants_gpu) {
        found()
    } else {
        let gpus = Gpus::Here(Err("not looked for".to_owned()));
        Found { gpus, launched: false, nvcc: Err("not looked for".to_owned()) }
    };
    let said = match asked.by {
        By::Flag => "--device",
        By::Environment => "MEMCHECK_DEVICE",
        By::Configuration => "configuration",
        By::Archive => "the archive",
        By::Nobody => "auto",
    };
    let mut legs: Vec<Leg> = Vec::new();
    for request in &asked.requests {
        let leg = match request {
            Request::Auto => auto(machine, lacks, &found),
            Request::Cpu => Leg::new(Request::Cpu, Kind::Cpu, said),
            Request::Sim(named) => {
                let machine = named.as_deref().unwrap_or(machine).to_owned();
                Leg::new(Request::Sim(Some(machine)), Kind::Sim, said)
            }
            Request::Cuda(number) => real(*number, &found, said)
                .map_err(|why| DeviceError::NoGpu { device: request.to_string(), why })?,
        };
        let shares = |known: &&mut Leg| match (known.kind, leg.kind, sharing) {
            (Kind::Cuda, Kind::Cuda, Sharing::Together) => true,
            _ => known.name() == leg.name(),
        };
        match legs.iter_mut().find(shares) {
            Some(known) if leg.kind == Kind::Cuda => known.join(leg),
            Some(_) => {}
            None => legs.push(leg),
        }
    }
    Ok(legs)
}

/// The real GPU if the driver answers and there is a compiler for it, else the
/// simulated one if candle is there to be built for it, else the CPU.
fn auto(machine: &str, lacks: Option<&str>, found: &Found) -> Leg {
    match real(None, found, "auto") {
        Ok(leg) => leg,
        Err(why) => match lacks {
            None => {
                let machine = Request::Sim(Some(machine.to_owned()));
                Leg::new(machine, Kind::Sim, format!("auto: {why}"))
            }
            Some(lacks) => Leg::new(Request::Cpu, Kind::Cpu, format!("auto: {why}, and {lacks}")),
        },
    }
}

/// The real GPU of this number, or all that there are.
fn real(number: Option<u16>, found: &Found, said: &str) -> Result<Leg, String> {
    let gpus: Vec<Gpu> = match (&found.gpus, number) {
        (Gpus::Elsewhere, _) => Vec::new(),
        (Gpus::Here(Err(why)), _) => return Err(why.clone()),
        (Gpus::Here(Ok(gpus)), None) => gpus.clone(),
        (Gpus::Here(Ok(gpus)), Some(number)) => {
            let gpu = gpus.iter().find(|gpu| gpu.index == number);
            let gpu = gpu.ok_or_else(|| format!("the driver lists {} GPU(s)", gpus.len()))?;
            vec![gpu.clone()]
        }
    };
    let named = match gpus.as_slice() {
        [] => "run on another machine".to_owned(),
        gpus => names(gpus),
    };
    found.nvcc.as_ref().map_err(|why| format!("{named} is there, but {why}"))?;
    let leg = Leg::new(Request::Cuda(number), Kind::Cuda, format!("{said}: {named}"));
    // Of those that nobody named a launcher gives one.
    let gpus = if found.launched && number.is_none() { Vec::new() } else { gpus };
    Ok(Leg { numbers: number.into_iter().collect(), gpus, ..leg })
}
