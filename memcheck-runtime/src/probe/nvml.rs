//! What NVML says that this process holds: contexts, modules and library
//! workspaces included, which no probe sees.
//!
//! NVML knows processes by the ids of the host, which in a container are not
//! ours: no answer beats a wrong one.

use memcheck_core::space::Space;
use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unavailable {
    /// No library, no driver, or a call that is not supported (MIG, say).
    #[error("{0}")]
    Nvml(#[from] NvmlError),
    /// The simulated toolkit did not bring its library.
    #[cfg(feature = "sim")]
    #[error("the simulated toolkit has no NVML here")]
    NoLibrary,
    /// The simulated library could not be loaded.
    #[cfg(feature = "sim")]
    #[error("{0}")]
    Simulated(#[from] memcheck_sim::NvmlError),
    /// Process ids here are not those of the host.
    #[error("process ids in a container are not those that it knows")]
    Container,
    /// The process is not on the list: a container, or another user's view.
    #[error("this process is not on its list")]
    NotListed,
    /// It is on the list without a figure.
    #[error("it has no figure for this process")]
    NoFigure,
    /// Not a device.
    #[error("not a GPU")]
    NotADevice,
}

/// Bytes that this process holds on the device of `space`.
pub(crate) fn device_used(space: Space) -> Result<u64, Unavailable> {
    let Space::Cuda(ordinal) = space else { return Err(Unavailable::NotADevice) };
    if in_a_pid_namespace() {
        return Err(Unavailable::Container);
    }
    let nvml = open()?;
    let device = nvml.device_by_index(u32::from(ordinal))?;
    let own = std::process::id();
    let process = device
        .running_compute_processes()?
        .into_iter()
        .find(|process| process.pid == own)
        .ok_or(Unavailable::NotListed)?;
    match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Ok(bytes),
        UsedGpuMemory::Unavailable => Err(Unavailable::NoFigure),
    }
}

/// Whether process ids here differ from the host's: the first namespace has a
/// fixed number (`PROC_PID_INIT_INO` of the kernel). The simulated NVML knows
/// our own ids.
fn in_a_pid_namespace() -> bool {
    const FIRST: &str = "pid:[4026531836]";
    let own = std::fs::read_link("/proc/self/ns/pid");
    !cfg!(feature = "sim") && own.is_ok_and(|own| own.as_os_str() != FIRST)
}

#[cfg(not(feature = "sim"))]
fn open() -> Result<Nvml, Unavailable> {
    Ok(Nvml::init()?)
}

/// The simulated device answers through a small library that the simulated
/// toolkit brings and that calls back into this program.
#[cfg(feature = "sim")]
fn open() -> Result<Nvml, Unavailable> {
    let path = std::env::var_os("MEMCHECK_SIM_NVML").ok_or(Unavailable::NoLibrary)?;
    memcheck_sim::attach_nvml(std::path::Path::new(&path))?;
    Ok(Nvml::builder().lib_path(&path).init()?)
}
