//! Resolves the requested devices to the legs of a run. The requested real GPUs together are one
//! leg. `auto` is resolved here, once, from the probe.

use memcheck_core::device::Request;
use memcheck_core::size::counted;

use super::{DeviceKind, Leg};
use crate::invocation::devices::{DeviceError, DeviceSource, RequestedDevices, Sharing};
use crate::system::gpus::{RealGpu, names};

/// As far as it can be determined without opening a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) gpus: Gpus,
    pub(crate) launched: bool,
    /// The CUDA compiler, or the reason why there is none.
    pub(crate) nvcc: Result<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gpus {
    Here(Result<Vec<RealGpu>, String>),
    Elsewhere,
}

/// Each device once. `lacks` is the reason why `auto` must not choose the simulated device.
pub(crate) fn resolve(
    requested: &RequestedDevices,
    machine: &str,
    lacks: Option<&str>,
    sharing: Sharing,
    found: impl FnOnce() -> Found,
) -> Result<Vec<Leg>, DeviceError> {
    let wants_gpu = |request: &Request| matches!(request, Request::Auto | Request::Cuda(_));
    // A probe starts processes, so it is made only if its result matters.
    let found = if requested.requests.iter().any(wants_gpu) {
        found()
    } else {
        let gpus = Gpus::Here(Err("not checked".to_owned()));
        Found { gpus, launched: false, nvcc: Err("not checked".to_owned()) }
    };
    let source = match requested.by {
        DeviceSource::Flag => "--device",
        DeviceSource::Environment => "MEMCHECK_DEVICE",
        DeviceSource::Configuration => "configuration",
        DeviceSource::Archive => "the archive",
        DeviceSource::Default => "auto",
    };
    let mut legs: Vec<Leg> = Vec::new();
    for request in &requested.requests {
        let leg = match request {
            Request::Auto => resolve_auto(machine, lacks, &found),
            Request::Cpu => Leg::new(Request::Cpu, DeviceKind::Cpu, source),
            Request::Sim(named) => {
                let machine = named.as_deref().unwrap_or(machine).to_owned();
                Leg::new(Request::Sim(Some(machine)), DeviceKind::Sim, source)
            }
            Request::Cuda(number) => resolve_gpu(*number, &found, source)
                .map_err(|why| DeviceError::NoGpu { device: request.to_string(), why })?,
        };
        let shares = |known: &&mut Leg| match (known.kind, leg.kind, sharing) {
            (DeviceKind::Cuda, DeviceKind::Cuda, Sharing::Together) => true,
            _ => known.name() == leg.name(),
        };
        match legs.iter_mut().find(shares) {
            Some(known) if leg.kind == DeviceKind::Cuda => known.join(leg),
            Some(_) => {}
            None => legs.push(leg),
        }
    }
    Ok(legs)
}

/// The real GPU if there is a compiler for it, else the simulated device unless `lacks` excludes
/// it, else the CPU.
fn resolve_auto(machine: &str, lacks: Option<&str>, found: &Found) -> Leg {
    match resolve_gpu(None, found, "auto") {
        Ok(leg) => leg,
        Err(why) => match lacks {
            None => {
                let machine = Request::Sim(Some(machine.to_owned()));
                Leg::new(machine, DeviceKind::Sim, format!("auto: {why}"))
            }
            Some(lacks) => {
                Leg::new(Request::Cpu, DeviceKind::Cpu, format!("auto: {why}, and {lacks}"))
            }
        },
    }
}

fn resolve_gpu(number: Option<u16>, found: &Found, source: &str) -> Result<Leg, String> {
    let gpus: Vec<RealGpu> = match (&found.gpus, number) {
        (Gpus::Elsewhere, _) => Vec::new(),
        (Gpus::Here(Err(why)), _) => return Err(why.clone()),
        (Gpus::Here(Ok(gpus)), None) => gpus.clone(),
        (Gpus::Here(Ok(gpus)), Some(number)) => {
            let gpu = gpus.iter().find(|gpu| gpu.index == number);
            let count = counted(gpus.len() as u64, "GPU", "GPUs");
            let gpu = gpu.ok_or_else(|| format!("the driver lists {count}"))?;
            vec![gpu.clone()]
        }
    };
    let named = match gpus.as_slice() {
        [] => "the GPU of another machine".to_owned(),
        gpus => names(gpus),
    };
    // After the GPU is known, because the message names it.
    found.nvcc.as_ref().map_err(|why| format!("{named} is available, but {why}"))?;
    let leg = Leg::new(Request::Cuda(number), DeviceKind::Cuda, format!("{source}: {named}"));
    // A launcher assigns the GPUs that the user did not name.
    let gpus = if found.launched && number.is_none() { Vec::new() } else { gpus };
    Ok(Leg { numbers: number.into_iter().collect(), gpus, ..leg })
}
