//! The memory of this process according to NVML. It includes contexts, modules and library
//! workspaces, which the probes do not see.
//!
//! NVML identifies processes by the ids of the host, which differ from the ids in a container. It
//! numbers devices independently, because `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER` change the
//! driver's numbers only. If a figure could be wrong, these functions return an error instead.

use memcheck_core::measurement::driver::Occupant;
use memcheck_core::space::Space;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use crate::driver::{DriverError, GpuHandle};

/// The reason why NVML gives no figure.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NvmlUnavailable {
    /// The library or the driver is missing, or a call is not supported.
    #[error("{0}")]
    Nvml(#[from] NvmlError),
    #[error("the driver returned no UUID: {0}")]
    Unnamed(#[from] DriverError),
    /// NVML does not report the processes of this slice of a card in MIG mode.
    #[error("the device is a slice of a card in MIG mode: {0}")]
    Slice(NvmlError),
    /// The simulated toolkit does not contain the library.
    #[cfg(feature = "sim")]
    #[error("the simulated toolkit has no NVML: `MEMCHECK_SIM_NVML` is not set")]
    NoLibrary,
    #[cfg(feature = "sim")]
    #[error("{0}")]
    Simulated(#[from] memcheck_sim::NvmlError),
    /// The process ids here are not those of the host.
    #[error("process ids in a container differ from those of the host")]
    Container,
    /// The process is not on the list, because of a container or of another user's view.
    #[error("this process is not in its list of processes")]
    NotListed,
    #[error("it has no figure for this process")]
    NoFigure,
    #[error("the device is not a GPU")]
    NotADevice,
}

/// Bytes that this process holds on the device of `space`.
pub(crate) fn device_used(space: Space) -> Result<u64, NvmlUnavailable> {
    let Space::Cuda(ordinal) = space else { return Err(NvmlUnavailable::NotADevice) };
    // The number of another process on the host can equal the one that this process has here.
    if in_a_pid_namespace() {
        return Err(NvmlUnavailable::Container);
    }
    let nvml = open()?;
    let own = std::process::id();
    let process = running(&find(&nvml, &uuid(ordinal)?)?)?
        .into_iter()
        .find(|process| process.pid == own)
        .ok_or(NvmlUnavailable::NotListed)?;
    bytes(&process).ok_or(NvmlUnavailable::NoFigure)
}

/// Other processes that hold memory of the device of `space`. In a container this process is among
/// them, because its id on the host is not known here.
pub(crate) fn others(space: Space) -> Result<Vec<Occupant>, NvmlUnavailable> {
    let Space::Cuda(ordinal) = space else { return Err(NvmlUnavailable::NotADevice) };
    let nvml = open()?;
    let (own, maybe_own) = (std::process::id(), in_a_pid_namespace());
    let running = running(&find(&nvml, &uuid(ordinal)?)?)?;
    let others = running.into_iter().filter(|process| maybe_own || process.pid != own);
    let mut others: Vec<Occupant> = others
        .map(|process| Occupant {
            space,
            pid: process.pid,
            name: name(&nvml, process.pid),
            bytes: bytes(&process),
            maybe_own,
        })
        .collect();
    others.sort_by_key(|other| std::cmp::Reverse(other.bytes));
    Ok(others)
}

/// The name of a process without its folder.
fn name(nvml: &Nvml, pid: u32) -> Option<String> {
    const LENGTH: usize = 256;
    let path = nvml.sys_process_name(pid, LENGTH).ok()?;
    let name = path.split_whitespace().next()?.rsplit('/').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

fn bytes(process: &ProcessInfo) -> Option<u64> {
    match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    }
}

/// The UUID of the device in the driver; that of the slice if the device is a slice of a card.
fn uuid(ordinal: u16) -> Result<[u8; 16], DriverError> {
    GpuHandle::get(ordinal)?.uuid()
}

/// The processes on a device. NVML does not always report those of a slice of a card.
fn running(device: &Device<'_>) -> Result<Vec<ProcessInfo>, NvmlUnavailable> {
    device.running_compute_processes().map_err(|error| match device.mig_is_mig_device_handle() {
        Ok(true) => NvmlUnavailable::Slice(error),
        Ok(false) | Err(_) => error.into(),
    })
}

/// The device that has this UUID in the driver: a GPU, or a slice of one.
fn find<'nvml>(nvml: &'nvml Nvml, uuid: &[u8; 16]) -> Result<Device<'nvml>, NvmlUnavailable> {
    match nvml.device_by_uuid(format_uuid("GPU", uuid)) {
        // The UUID does not show whether the device is a GPU or a slice of one.
        Err(NvmlError::NotFound) => Ok(nvml.device_by_uuid(format_uuid("MIG", uuid))?),
        found => Ok(found?),
    }
}

/// NVML's name of the device of `space`: `GPU-…`, or `MIG-…` for a slice.
#[cfg(not(feature = "sim"))]
pub(crate) fn name_of(space: Space) -> Result<String, NvmlUnavailable> {
    let Space::Cuda(ordinal) = space else { return Err(NvmlUnavailable::NotADevice) };
    Ok(find(&open()?, &uuid(ordinal)?)?.uuid()?)
}

/// A UUID in NVML's format: `GPU-01234567-89ab-cdef-0123-456789abcdef`.
fn format_uuid(kind: &str, uuid: &[u8; 16]) -> String {
    let mut text = kind.to_owned();
    for (index, byte) in uuid.iter().enumerate() {
        if [0, 4, 6, 8, 10].contains(&index) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// True if process ids here differ from the host's. The initial namespace has a fixed number
/// (`PROC_PID_INIT_INO` of the kernel). The simulated NVML uses the ids of this namespace.
fn in_a_pid_namespace() -> bool {
    const FIRST: &str = "pid:[4026531836]";
    let own = std::fs::read_link("/proc/self/ns/pid");
    !cfg!(feature = "sim") && own.is_ok_and(|own| own.as_os_str() != FIRST)
}

#[cfg(not(feature = "sim"))]
fn open() -> Result<Nvml, NvmlUnavailable> {
    Ok(Nvml::init()?)
}

/// Opens the library of the simulated toolkit, which calls back into this program.
#[cfg(feature = "sim")]
fn open() -> Result<Nvml, NvmlUnavailable> {
    let path = std::env::var_os("MEMCHECK_SIM_NVML").ok_or(NvmlUnavailable::NoLibrary)?;
    memcheck_sim::attach_nvml(std::path::Path::new(&path))?;
    Ok(Nvml::builder().lib_path(&path).init()?)
}
