//! From the devices that are asked for to the legs of a run.
//!
//! A leg is one device: a build of its own, and a run of every test that makes
//! sense there. `auto` is resolved here, once, from what the probe found.

use memcheck_core::device::{Family, Request, RequestError};
use memcheck_core::exit;
use serde::{Deserialize, Serialize};

use crate::error::Expected;
use crate::machine::{Machine, MachineError};

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
    /// The CUDA compiler, or why there is none.
    pub(crate) nvcc: Result<String, String>,
}

/// The GPUs that tests run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gpus {
    /// Those that the driver lists, or why it does not.
    Here(Result<Vec<String>, String>),
    /// Whatever there is on another machine.
    Elsewhere,
}

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

/// One device that tests run on. Never `auto`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leg {
    /// The device, with its card where it is simulated.
    pub(crate) device: Request,
    /// The build that it needs.
    pub(crate) kind: Kind,
    /// Why it was chosen, for people.
    pub(crate) why: String,
}

impl Leg {
    /// The device as it is printed: `sim:h200`.
    pub(crate) fn name(&self) -> String {
        self.device.to_string()
    }

    /// The family of its baselines.
    pub(crate) fn family(&self) -> Family {
        match self.kind {
            Kind::Cpu => Family::Cpu,
            Kind::Sim | Kind::Cuda => Family::Cuda,
        }
    }
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
    found: impl FnOnce() -> Found,
) -> Result<Vec<Leg>, DeviceError> {
    let wants_gpu = |request: &Request| matches!(request, Request::Auto | Request::Cuda(_));
    // Probing starts processes: only where the answer matters.
    let found = if asked.requests.iter().any(wants_gpu) {
        found()
    } else {
        let gpus = Gpus::Here(Err("not looked for".to_owned()));
        Found { gpus, nvcc: Err("not looked for".to_owned()) }
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
            Request::Cpu => Leg { device: Request::Cpu, kind: Kind::Cpu, why: said.to_owned() },
            Request::Sim(named) => Leg {
                device: Request::Sim(Some(named.as_deref().unwrap_or(machine).to_owned())),
                kind: Kind::Sim,
                why: said.to_owned(),
            },
            Request::Cuda(ordinal) => {
                let gpus = gpu(*ordinal, &found)
                    .map_err(|why| DeviceError::NoGpu { device: request.to_string(), why })?;
                Leg { device: request.clone(), kind: Kind::Cuda, why: format!("{said}: {gpus}") }
            }
        };
        if legs.iter().all(|known| known.device != leg.device) {
            legs.push(leg);
        }
    }
    Ok(legs)
}

/// The real GPU if the driver answers and there is a compiler for it, else the
/// simulated one if candle is there to be built for it, else the CPU.
fn auto(machine: &str, lacks: Option<&str>, found: &Found) -> Leg {
    match gpu(None, found) {
        Ok(gpus) => {
            Leg { device: Request::Cuda(None), kind: Kind::Cuda, why: format!("auto: {gpus}") }
        }
        Err(why) => match lacks {
            None => Leg {
                device: Request::Sim(Some(machine.to_owned())),
                kind: Kind::Sim,
                why: format!("auto: {why}"),
            },
            Some(lacks) => Leg {
                device: Request::Cpu,
                kind: Kind::Cpu,
                why: format!("auto: {why}, and {lacks}"),
            },
        },
    }
}

fn gpu(ordinal: Option<u16>, found: &Found) -> Result<String, String> {
    let named = match (&found.gpus, ordinal) {
        (Gpus::Elsewhere, _) => "run on another machine".to_owned(),
        (Gpus::Here(Err(why)), _) => return Err(why.clone()),
        (Gpus::Here(Ok(gpus)), None) => gpus.join(", "),
        (Gpus::Here(Ok(gpus)), Some(ordinal)) => gpus
            .get(usize::from(ordinal))
            .cloned()
            .ok_or_else(|| format!("the driver lists {} GPU(s)", gpus.len()))?,
    };
    found.nvcc.as_ref().map_err(|why| format!("{named} is there, but {why}"))?;
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legs(asked: &[&str], candle: bool, found: Found) -> Result<Vec<String>, DeviceError> {
        let asked = Asked { requests: parse_list(asked.iter().copied())?, by: By::Flag };
        let legs =
            resolve(&asked, "t4", (!candle).then_some("no package has candle-core"), || found)?;
        Ok(legs.iter().map(Leg::name).collect())
    }

    fn nothing() -> Found {
        Found { gpus: Gpus::Here(Err("no driver".to_owned())), nvcc: Err("no nvcc".to_owned()) }
    }

    fn one_gpu() -> Found {
        Found { gpus: Gpus::Here(Ok(vec!["NVIDIA H200".to_owned()])), nvcc: Ok("13.0".to_owned()) }
    }

    #[test]
    fn auto_prefers_a_real_gpu_then_the_simulated_one_then_the_cpu() {
        assert_eq!(legs(&["auto"], true, one_gpu()).unwrap(), ["cuda"]);
        assert_eq!(legs(&["auto"], true, nothing()).unwrap(), ["sim:t4"]);
        assert_eq!(legs(&["auto"], false, nothing()).unwrap(), ["cpu"]);
        let no_compiler = Found { nvcc: Err("no nvcc".to_owned()), ..one_gpu() };
        assert_eq!(legs(&["auto"], true, no_compiler).unwrap(), ["sim:t4"]);
    }

    #[test]
    fn a_gpu_that_is_not_there_is_never_replaced() {
        let error = legs(&["cuda"], true, nothing()).unwrap_err();
        assert_eq!(error.exit_code(), exit::NO_DEVICE);
        assert_eq!(legs(&["cuda:1"], true, one_gpu()).unwrap_err().exit_code(), exit::NO_DEVICE);
        assert_eq!(legs(&["cuda:0"], true, one_gpu()).unwrap(), ["cuda:0"]);
    }

    #[test]
    fn an_archive_needs_the_compiler_and_no_gpu() {
        let elsewhere = || Found { gpus: Gpus::Elsewhere, ..one_gpu() };
        assert_eq!(legs(&["cuda:3", "auto"], true, elsewhere()).unwrap(), ["cuda:3", "cuda"]);
        let no_compiler = Found { gpus: Gpus::Elsewhere, ..nothing() };
        let error = legs(&["cuda"], true, no_compiler).unwrap_err();
        assert!(error.to_string().contains("no nvcc"), "{error}");
    }

    #[test]
    fn several_devices_are_several_legs_each_once() {
        let asked = ["cpu", "sim", "sim:t4", "sim:h200", "cpu"];
        assert_eq!(legs(&asked, true, nothing()).unwrap(), ["cpu", "sim:t4", "sim:h200"]);
    }

    #[test]
    fn an_unknown_card_is_a_usage_error_that_names_the_nearest() {
        let error = legs(&["sim:rtx4091"], true, nothing()).unwrap_err();
        assert_eq!(error.exit_code(), exit::USAGE);
        assert_eq!(error.hint().unwrap(), "did you mean `rtx4090`?");
        assert!(
            legs(&["sim:toaster"], true, nothing()).unwrap_err().hint().unwrap().contains("h200")
        );
        assert!(legs(&["sim:h200,capacity=much"], true, nothing()).is_err());
        assert!(legs(&["gpu"], true, nothing()).is_err());
        let machine = "sim:2xrtx4090,capacity=8GiB+t4,mig";
        assert_eq!(legs(&[machine], true, nothing()).unwrap(), [machine]);
    }
}
