//! Opening the device that a test runs on.

use std::collections::BTreeMap;

use memcheck_core::device::Request;
use memcheck_core::limits::Limits;
use memcheck_core::measurement::unified::Unified;
use memcheck_core::space::Space;

use crate::device::{self, Device};
#[cfg(all(feature = "cuda", not(feature = "sim")))]
use crate::probe;

#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("this binary was not built for `{0}`: run it through `cargo memcheck --device {0}`")]
    NotBuilt(Request),
    /// The specification of the simulated machine is invalid.
    #[cfg(feature = "sim")]
    #[error("{0}")]
    Machine(String),
    #[cfg(feature = "cuda")]
    #[error("the device `{0}` cannot be opened: {1}")]
    Refused(Request, device::Error),
}

impl OpenError {
    /// True if the device itself is not available.
    pub(super) fn is_device_fault(&self) -> bool {
        #[cfg(feature = "cuda")]
        if let Self::Refused(..) = self {
            return true;
        }
        false
    }
}

/// Opens the device of `request`, which must not be `auto` and must have been prepared.
pub(super) fn device(request: &Request) -> Result<Device, OpenError> {
    match request {
        #[cfg(feature = "sim")]
        Request::Sim(_) => cuda(request, 0),
        #[cfg(all(feature = "cuda", not(feature = "sim")))]
        Request::Cuda(ordinal) => cuda(request, ordinal.unwrap_or(0)),
        _ => Ok(device::HOST),
    }
}

/// Prepares the device of `request`, so that this process can open it and each device holds at most
/// `fits`. The simulated machine gets devices of that size, and the contents of `values`. On a real driver the probes refuse
/// allocations above it.
pub(super) fn prepare(request: &Request, limits: &Limits) -> Result<(), OpenError> {
    // `fits` does not limit the host.
    #[cfg(not(feature = "cuda"))]
    let _ = limits;
    match request {
        Request::Cpu => Ok(()),
        #[cfg(feature = "sim")]
        Request::Sim(machine) => simulate(machine.as_deref(), limits),
        #[cfg(all(feature = "cuda", not(feature = "sim")))]
        Request::Cuda(_) => {
            if let Some(fits) = limits.fits.value {
                probe::cuda::limit::set(fits.bytes());
            }
            Ok(())
        }
        other => Err(OpenError::NotBuilt(other.clone())),
    }
}

/// The capacity of each device of `request`, regardless of `fits`; empty on the host.
pub(super) fn capacities(request: &Request) -> BTreeMap<Space, u64> {
    match request {
        #[cfg(feature = "sim")]
        Request::Sim(machine) => {
            let devices = machine_of(machine.as_deref()).map_or_else(|_| Vec::new(), |m| m.devices);
            (0..).map(Space::Cuda).zip(devices.iter().map(|device| device.capacity)).collect()
        }
        #[cfg(all(feature = "cuda", not(feature = "sim")))]
        Request::Cuda(_) => probe::card::capacities(),
        _ => BTreeMap::new(),
    }
}

/// The one memory of host and device so far, if the simulated machine of `request` has one.
pub(super) fn unified(request: &Request) -> Option<Unified> {
    #[cfg(feature = "sim")]
    if let Request::Sim(machine) = request {
        let device = *machine_of(machine.as_deref()).ok()?.devices.first()?;
        return device.card.memory.is_shared().then(|| Unified {
            space: Space::Cuda(0),
            card: device.card.name.to_owned(),
            capacity: device.capacity,
            peak_allocated: memcheck_ledger::sum().peak,
        });
    }
    let _ = request;
    None
}

#[cfg(feature = "sim")]
fn machine_of(name: Option<&str>) -> Result<memcheck_sim::Spec, memcheck_sim::SpecError> {
    name.unwrap_or(memcheck_sim::DEFAULT_MACHINE).parse()
}

#[cfg(feature = "sim")]
fn simulate(machine: Option<&str>, limits: &Limits) -> Result<(), OpenError> {
    use memcheck_core::request::variables::{SIM_FAULTS, SIM_PROCESSES};
    fn machine_error(error: impl std::fmt::Display) -> OpenError {
        OpenError::Machine(error.to_string())
    }
    // Otherwise the linker can leave out functions that only C code calls.
    memcheck_sim::link();
    memcheck_sim::count_heap(memcheck_ledger::heap);
    // candle links CUDA. Other programs mostly load it.
    #[cfg(not(feature = "candle"))]
    memcheck_sim::provide_libraries(&crate::probe::cuda::table()).map_err(machine_error)?;
    let mut spec = machine_of(machine).map_err(machine_error)?;
    if spec.devices.iter().any(|device| device.card.memory.is_shared()) {
        memcheck_ledger::count_sum();
    }
    let processes = std::env::var(SIM_PROCESSES.name).unwrap_or_default();
    let in_processes = |error| machine_error(format!("{}: {error}", SIM_PROCESSES.name));
    let processes = memcheck_sim::processes(&processes).map_err(in_processes)?;
    spec = spec.with_processes(processes).map_err(in_processes)?;
    spec = spec.with_values(limits.values.value);
    if let Some(fits) = limits.fits.value {
        spec.limit(fits.bytes());
    }
    let faults = std::env::var(SIM_FAULTS.name).unwrap_or_default();
    let faults: memcheck_sim::Faults = match faults.as_str() {
        "" => memcheck_sim::Faults::default(),
        text => {
            text.parse().map_err(|error| machine_error(format!("{}: {error}", SIM_FAULTS.name)))?
        }
    };
    memcheck_sim::configure(&spec.with_faults(faults)).map_err(machine_error)
}

#[cfg(feature = "cuda")]
fn cuda(request: &Request, ordinal: u16) -> Result<Device, OpenError> {
    device::open(ordinal).map_err(|error| OpenError::Refused(request.clone(), error))
}
