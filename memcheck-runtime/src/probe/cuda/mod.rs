//! The CUDA probe: the driver's and the runtime library's allocation calls,
//! defined here under their own names.
//!
//! candle builds cudarc with dynamic linking, so a symbol of the executable
//! wins over the one in `libcuda.so`; each function below forwards to the next
//! definition of its name (`dlsym(RTLD_NEXT, …)`), or to the simulated device
//! where that is linked in, and books what came of it. No `LD_PRELOAD`, no
//! environment. Libraries that load the driver themselves (cuBLAS, cudart) do
//! not come through here: what they hold shows in NVML only.
//!
//! `driver` and `cudart` are tables of the functions, one for each library;
//! `next` makes a probe of a row; `limit` refuses what a test must do without.

mod cudart;
mod driver;
#[cfg(not(feature = "sim"))]
pub(crate) mod limit;
mod next;

use std::ffi::c_int;

use candle_core::Device;
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{result, sys};
use memcheck_core::space::Space;

use super::{recording, tensor};
use crate::{ledger, scope};

/// `CUDA_SUCCESS` and `cudaSuccess`.
const SUCCESS: c_int = 0;
/// `CUDA_ERROR_OUT_OF_MEMORY` and `cudaErrorMemoryAllocation`.
const OUT_OF_MEMORY: c_int = 2;

unsafe extern "C" {
    fn cuCtxGetDevice(device: *mut c_int) -> c_int;
}

/// The version of CUDA that the driver has, as `major * 1000 + minor * 10`.
///
/// # Errors
/// When the driver does not answer.
#[cfg(not(feature = "sim"))]
pub(crate) fn driver_version() -> candle_core::Result<c_int> {
    unsafe extern "C" {
        fn cuDriverGetVersion(version: *mut c_int) -> c_int;
    }
    let mut version = 0;
    // SAFETY: the driver writes one int to a pointer to one int.
    match unsafe { cuDriverGetVersion(&raw mut version) } {
        SUCCESS => Ok(version),
        error => candle_core::bail!("cuDriverGetVersion answers {error}"),
    }
}

/// Whether the driver that was loaded is the simulated one.
pub(crate) fn is_simulated() -> bool {
    if cfg!(feature = "sim") {
        return true;
    }
    // SAFETY: a constant, terminated name; the function behind it is not called.
    let mark = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"cuMemcheckSimulated".as_ptr()) };
    !mark.is_null()
}

/// The spaces that a probe's row names.
mod space {
    use std::ffi::c_int;

    use memcheck_core::space::Space;

    /// The calling thread's current device. An allocation that succeeded had one.
    fn ordinal() -> Option<u16> {
        let mut ordinal: c_int = -1;
        // SAFETY: the driver writes one int to a pointer to one int.
        let result = unsafe { super::cuCtxGetDevice(&raw mut ordinal) };
        (result == super::SUCCESS).then(|| u16::try_from(ordinal).ok()).flatten()
    }

    /// Memory of the device.
    pub(super) fn device() -> Option<Space> {
        ordinal().map(Space::Cuda)
    }

    /// Managed memory for the device.
    pub(super) fn managed() -> Option<Space> {
        ordinal().map(Space::Managed)
    }

    /// Page-locked host memory for the device.
    pub(super) fn pinned() -> Option<Space> {
        ordinal().map(Space::Pinned)
    }
}

/// Allocates and frees one block of pinned memory.
///
/// # Errors
/// If the driver refuses it.
pub(crate) fn pinned_block(device: &Device) -> candle_core::Result<()> {
    let Device::Cuda(cuda) = device else { return Ok(()) };
    cuda.cuda_stream().context().bind_to_thread().w()?;
    // SAFETY: the block is freed once, by the call that belongs to its allocation, and it is
    // neither read nor written.
    unsafe { result::malloc_host(4096, 0).and_then(|block| result::free_host(block)) }.w()
}

/// Allocates and frees one block of managed memory.
///
/// # Errors
/// If the driver refuses it.
pub(crate) fn managed_block(device: &Device) -> candle_core::Result<()> {
    let Device::Cuda(cuda) = device else { return Ok(()) };
    cuda.cuda_stream().context().bind_to_thread().w()?;
    let global = sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL;
    // SAFETY: as in `pinned_block`.
    unsafe { result::malloc_managed(4096, global).and_then(|block| result::free_sync(block)) }.w()
}

/// Whether `size` bytes more are refused before anyone is asked.
#[inline]
fn is_refused(space: fn() -> Option<Space>, size: usize) -> bool {
    #[cfg(not(feature = "sim"))]
    return ledger::is_armed() && limit::is_set() && {
        let space = space();
        // A tensor that was dropped meanwhile makes room before anything is decided.
        limit::is_above(space, size) && {
            tensor::settle();
            limit::is_above(space, size)
        }
    };
    // The device itself is as small as it must be.
    #[cfg(feature = "sim")]
    {
        let _ = (space, size);
        false
    }
}

/// Books the outcome of an allocation of `size` bytes by the function `name`.
///
/// # Safety
/// `out` is the pointer that the call was given for its result; where `result`
/// is success, the call has written an address there.
unsafe fn book(
    name: &'static str,
    result: c_int,
    (out, size): (*const u64, usize),
    space: Option<Space>,
) -> c_int {
    recording::note(name, size as u64, result);
    if !ledger::is_armed() {
        return result;
    }
    match (result, space) {
        (SUCCESS, Some(space)) => {
            // SAFETY: by this function's contract.
            let address = unsafe { out.read() };
            // Nothing was asked for and nothing given: cudaMalloc allows that.
            if address != 0 {
                scope::needed();
                ledger::allocated(space, address, size as u64);
            }
        }
        (SUCCESS, None) => ledger::lost_one(),
        (OUT_OF_MEMORY, Some(space)) => {
            // What is live is shown with its shapes.
            tensor::settle();
            scope::needed();
            ledger::refused(space, size as u64);
        }
        _ => {}
    }
    result
}

/// Books a free around the call that does it: before, so that nobody else can
/// be given the address while it is still in the ledger; and takes it back
/// where the driver refuses, because then the block is live.
fn book_free(name: &'static str, address: u64, free: impl FnOnce() -> c_int) -> c_int {
    // While the tensor that may be dropped here can still be looked at.
    tensor::settle();
    let block = if ledger::is_armed() { ledger::freed(address) } else { None };
    let result = free();
    recording::note(name, block.map_or(0, |block| block.size), result);
    if result != SUCCESS
        && let Some(block) = block
    {
        ledger::free_failed(address, block);
    }
    result
}
