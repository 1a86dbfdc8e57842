//! Opening the device that a test runs on.

use std::collections::BTreeMap;

use candle_core::Device;
use memcheck_core::capacity::Capacity;
use memcheck_core::device::Request;
use memcheck_core::space::Space;

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The binary has no code for it.
    #[error("this binary was not built for `{0}`: run it through `cargo memcheck --device {0}`")]
    NotBuilt(Request),
    /// The simulated machine does not exist.
    #[cfg(feature = "sim")]
    #[error("{0}")]
    Machine(String),
    /// candle or the driver refuse it.
    #[cfg(feature = "cuda")]
    #[error("the device `{0}` cannot be opened: {1}")]
    Refused(Request, candle_core::Error),
}

impl OpenError {
    /// Whether the device itself is not to be had.
    pub(crate) fn is_about_the_device(&self) -> bool {
        #[cfg(feature = "cuda")]
        if let Self::Refused(..) = self {
            return true;
        }
        false
    }
}

/// Opens the device of `request`, which is never `auto` and was prepared.
pub(crate) fn open(request: &Request) -> Result<Device, OpenError> {
    match request {
        #[cfg(feature = "sim")]
        Request::Sim(_) => cuda(request, 0),
        #[cfg(all(feature = "cuda", not(feature = "sim")))]
        Request::Cuda(ordinal) => cuda(request, usize::from(ordinal.unwrap_or(0))),
        _ => Ok(Device::Cpu),
    }
}

/// Makes sure that the device of `request` can be opened by whoever does, and that
/// each holds no more than `fits`: the simulated machine is described so, and in
/// front of a real driver the probes refuse the rest.
pub(crate) fn prepare(request: &Request, fits: Option<Capacity>) -> Result<(), OpenError> {
    // The host has no capacity.
    #[cfg(not(feature = "cuda"))]
    let _ = fits;
    match request {
        Request::Cpu => Ok(()),
        #[cfg(feature = "sim")]
        Request::Sim(machine) => simulate(machine.as_deref(), fits),
        #[cfg(all(feature = "cuda", not(feature = "sim")))]
        Request::Cuda(_) => {
            if let Some(fits) = fits {
                crate::probe::cuda::limit::set(fits.bytes());
            }
            Ok(())
        }
        other => Err(OpenError::NotBuilt(other.clone())),
    }
}

/// What each device of `request` holds by itself, whatever `fits` says; empty on
/// the host.
pub(crate) fn capacities(request: &Request) -> BTreeMap<Space, u64> {
    match request {
        #[cfg(feature = "sim")]
        Request::Sim(machine) => {
            let devices = machine_of(machine.as_deref()).map_or_else(|_| Vec::new(), |m| m.devices);
            (0..).map(Space::Cuda).zip(devices.iter().map(|device| device.capacity)).collect()
        }
        #[cfg(all(feature = "cuda", not(feature = "sim")))]
        Request::Cuda(_) => crate::probe::card::capacities(),
        _ => BTreeMap::new(),
    }
}

#[cfg(feature = "sim")]
fn machine_of(name: Option<&str>) -> Result<memcheck_sim::Spec, memcheck_sim::SpecError> {
    name.unwrap_or(memcheck_sim::DEFAULT_MACHINE).parse()
}

#[cfg(feature = "sim")]
fn simulate(machine: Option<&str>, fits: Option<Capacity>) -> Result<(), OpenError> {
    use memcheck_core::variables::{SIM_FAULTS, SIM_PROCESSES};
    fn shown(error: impl std::fmt::Display) -> OpenError {
        OpenError::Machine(error.to_string())
    }
    memcheck_sim::link();
    let mut spec = machine_of(machine).map_err(shown)?;
    let processes = std::env::var(SIM_PROCESSES.name).unwrap_or_default();
    let named = |error| shown(format!("{}: {error}", SIM_PROCESSES.name));
    let processes = memcheck_sim::processes(&processes).map_err(named)?;
    spec = spec.with_processes(processes).map_err(named)?;
    if let Some(fits) = fits {
        spec.limit(fits.bytes());
    }
    let faults = std::env::var(SIM_FAULTS.name).unwrap_or_default();
    let faults: memcheck_sim::Faults = match faults.as_str() {
        "" => memcheck_sim::Faults::default(),
        text => text.parse().map_err(|error| shown(format!("{}: {error}", SIM_FAULTS.name)))?,
    };
    memcheck_sim::configure(&spec.with_faults(faults)).map_err(shown)
}

#[cfg(feature = "cuda")]
fn cuda(request: &Request, ordinal: usize) -> Result<Device, OpenError> {
    Device::new_cuda(ordinal).map_err(|error| OpenError::Refused(request.clone(), error))
}

/// Every device of the machine that `first` is on.
pub(crate) fn all(first: &Device) -> candle_core::Result<Vec<Device>> {
    match first {
        #[cfg(feature = "cuda")]
        Device::Cuda(_) => {
            use candle_core::cuda_backend::WrapErr;
            use candle_core::cuda_backend::cudarc::driver::CudaContext;
            let count = CudaContext::device_count().w()?;
            let first_ordinal = ordinal(first);
            (0..usize::try_from(count).unwrap_or(0))
                .map(|ordinal| match ordinal == first_ordinal {
                    true => Ok(first.clone()),
                    false => Device::new_cuda(ordinal),
                })
                .collect()
        }
        other => Ok(vec![other.clone()]),
    }
}

#[cfg(feature = "cuda")]
fn ordinal(device: &Device) -> usize {
    match device.location() {
        candle_core::DeviceLocation::Cuda { gpu_id } => gpu_id,
        _ => 0,
    }
}

/// The space that the tensors of `device` live in.
pub(crate) fn space(device: &Device) -> Space {
    match device.location() {
        candle_core::DeviceLocation::Cuda { gpu_id } => {
            Space::Cuda(u16::try_from(gpu_id).unwrap_or(u16::MAX))
        }
        _ => Space::Host,
    }
}
