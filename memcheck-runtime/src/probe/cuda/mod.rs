//! The CUDA probe: the allocation functions of the driver and of the runtime library, defined
//! under their own names.
//!
//! candle builds cudarc with dynamic linking, so a symbol of the executable takes precedence over
//! the symbol in `libcuda.so`. Each function here forwards to the next definition of its name
//! (`dlsym(RTLD_NEXT, …)`), or to the simulated device if that is linked, and records the result.
//! This needs neither `LD_PRELOAD` nor a variable. Libraries that load the driver themselves
//! (cuBLAS, cudart) bypass these functions, so only NVML reports their memory.
//!
//! `driver` and `cudart` are tables of the functions, one for each library. `next` generates a
//! probe from each row. `limit` refuses allocations above the limit of a test, and
//! [`crate::refusal`] refuses one on purpose. `graph` follows the memory of CUDA graphs.

mod cudart;
mod driver;
mod graph;
#[cfg(not(feature = "sim"))]
pub(crate) mod limit;
mod next;

use std::ffi::c_int;

use memcheck_core::quiet;
use memcheck_core::space::Space;
use memcheck_ledger as ledger;

use super::{recording, tensor};
use crate::{refusal, scope};

/// `CUDA_SUCCESS` and `cudaSuccess`.
const SUCCESS: c_int = 0;
/// `CUDA_ERROR_OUT_OF_MEMORY` and `cudaErrorMemoryAllocation`.
const OUT_OF_MEMORY: c_int = 2;

/// The names and addresses of all probes.
#[cfg(all(feature = "sim", not(feature = "candle")))]
pub(crate) fn table() -> Vec<(&'static str, *const std::ffi::c_void)> {
    let mut all = driver::table();
    all.extend(cudart::table());
    all
}

/// The spaces that the rows of the tables name.
mod space {
    use memcheck_core::space::Space;

    // After a successful allocation there is always a current device.
    use crate::driver::current_device as ordinal;

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

/// True if `size` further bytes must be refused without a call of the driver. PERF: the space is
/// asked only if it matters.
#[inline]
fn is_refused(space: impl Fn() -> Option<Space>, size: usize) -> bool {
    if refusal::is_on() && is_refused_on_purpose(space(), size) {
        return true;
    }
    #[cfg(not(feature = "sim"))]
    return ledger::is_armed() && limit::is_set() && {
        let space = space();
        // A tensor that has been dropped must free its memory before the limit is checked again.
        limit::exceeds(space, size) && {
            tensor::settle();
            limit::exceeds(space, size)
        }
    };
    // The simulated device already has the limited size.
    #[cfg(feature = "sim")]
    {
        let _ = (space, size);
        false
    }
}

#[cold]
fn is_refused_on_purpose(space: Option<Space>, size: usize) -> bool {
    matches!(space, Some(Space::Cuda(_))) && refusal::refuses(size as u64)
}

/// Records the outcome of an allocation of `size` bytes by the function `name`.
///
/// # Safety
/// `out` must be the pointer to the result of the call. If `result` is success, the call must have
/// written an address to it.
unsafe fn record_allocation(
    name: &'static str,
    result: c_int,
    (out, size): (*const u64, usize),
    space: Option<Space>,
) -> c_int {
    recording::add(name, size as u64, result);
    if !ledger::is_armed() {
        return result;
    }
    match (result, space) {
        (SUCCESS, _) if quiet::is_unmeasured() => {}
        (SUCCESS, Some(space)) => {
            // SAFETY: by this function's contract, the call has written an address to `out`.
            let address = unsafe { out.read() };
            // An allocation of 0 bytes returns no address, which cudaMalloc allows.
            if address != 0 && !graph::has_counted(space, address) {
                scope::install_pending();
                ledger::allocated(space, address, size as u64);
            }
        }
        (SUCCESS, None) => ledger::count_event_of_unknown_gpu(),
        (OUT_OF_MEMORY, Some(space)) => {
            // The report on the refusal shows live blocks with their shapes.
            tensor::settle();
            scope::install_pending();
            ledger::refused(space, size as u64);
        }
        _ => {}
    }
    result
}

/// The address by which the ledger knows registered host memory. Its block in the heap of the
/// process is counted too, under the address itself, which is even.
fn registered(address: u64) -> u64 {
    address | 1
}

/// Records a free around the call that does it. The block is removed before the call, so that
/// another thread cannot get the same address while it is still in the ledger. If the driver
/// refuses the free, the block is added again, because it is still live.
fn record_free(name: &'static str, address: u64, free: impl FnOnce() -> c_int) -> c_int {
    // Must come first, while the tensor that may be dropped here can still be read.
    tensor::settle();
    if graph::owns(address) {
        let result = graph::freed(address, free);
        recording::add(name, ledger::size_of(address).unwrap_or(0), result);
        return result;
    }
    let block = if ledger::is_armed() { ledger::freed(address) } else { None };
    let result = free();
    recording::add(name, block.map_or(0, |block| block.size), result);
    if result != SUCCESS
        && let Some(block) = block
    {
        ledger::free_failed(address, block);
    }
    result
}
