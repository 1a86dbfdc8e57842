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
    /// The simulated library could not be loaded.
    #[cfg(feature = "sim")]
    #[error("{0}")]
    Simulated(&'static str),
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

#[cfg(not(feature = "sim"))]
fn open() -> Result<Nvml, Unavailable> {
    Ok(Nvml::init()?)
}

/// The simulated device answers through a small library that the simulated
/// toolkit brings and that calls back into this program.
#[cfg(feature = "sim")]
fn open() -> Result<Nvml, Unavailable> {
    let path = std::env::var_os("MEMCHECK_SIM_NVML")
        .ok_or(Unavailable::Simulated("the simulated toolkit has no NVML here"))?;
    attach(&path)?;
    Ok(Nvml::builder().lib_path(&path).init()?)
}

#[cfg(feature = "sim")]
fn attach(path: &std::ffi::OsStr) -> Result<(), Unavailable> {
    use std::ffi::{CString, c_char, c_void};
    use std::os::unix::ffi::OsStrExt;
    type Set = unsafe extern "C" fn(name: *const c_char, function: *const c_void);

    let path = CString::new(path.as_bytes())
        .map_err(|_| Unavailable::Simulated("the path of the simulated NVML holds a zero byte"))?;
    // SAFETY: a terminated path; the library is the toolkit's own and has no
    // initialisers.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(Unavailable::Simulated("the simulated NVML cannot be loaded"));
    }
    // SAFETY: a live handle and a terminated name.
    let set = unsafe { libc::dlsym(library, c"memcheck_nvml_set".as_ptr()) };
    if set.is_null() {
        return Err(Unavailable::Simulated("the simulated NVML is of another version"));
    }
    // SAFETY: the toolkit's library declares it with this signature.
    let set: Set = unsafe { std::mem::transmute::<*mut c_void, Set>(set) };
    for (name, function) in memcheck_sim::nvml_table() {
        let name =
            CString::new(*name).map_err(|_| Unavailable::Simulated("a name with a zero byte"))?;
        // SAFETY: the name is terminated and copied from; the function lives
        // as long as the program.
        unsafe { set(name.as_ptr(), *function) };
    }
    Ok(())
}
