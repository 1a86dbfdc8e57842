//! Enforces `fits` on a real driver, which can have more memory. An allocation above the limit is
//! refused here, as a card of that size would refuse it, and is not forwarded to the driver.
//!
//! A simulated device is made smaller instead. If two threads request the last bytes at the same
//! moment, both requests can be granted. For this reason the peak is judged as well.
#![expect(non_snake_case, reason = "the driver's own names")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use memcheck_core::space::Space;
use memcheck_ledger as ledger;

use super::{SUCCESS, space};

/// The most bytes that the program may hold on each device.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Limits each device to `bytes`.
pub(crate) fn set(bytes: u64) {
    LIMIT.store(bytes, Relaxed);
}

#[inline]
pub(super) fn is_set() -> bool {
    LIMIT.load(Relaxed) != u64::MAX
}

/// The bytes of the limit that are left on the device `space`; `None` if `space` is not the memory
/// of a device.
fn remaining(space: Option<Space>) -> Option<u64> {
    let space @ Space::Cuda(_) = space? else { return None };
    Some(LIMIT.load(Relaxed).saturating_sub(ledger::snapshot(space).live))
}

/// True if `size` further bytes would exceed the limit of the device `space`.
pub(super) fn exceeds(space: Option<Space>, size: usize) -> bool {
    remaining(space).is_some_and(|remaining| size as u64 > remaining)
}

mod next {
    use super::super::next::forwards;

    forwards! {
        fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
        fn cudaMemGetInfo(free: *mut usize, total: *mut usize);
    }
}

/// Returns the figures that a device of the limited size would return.
///
/// # Safety
/// The contract of the function of this name in CUDA's headers applies.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    // SAFETY: the caller keeps the contract of the function, which then meets that of
    // `clamp_figures`.
    unsafe { clamp_figures(next::cuMemGetInfo_v2(free, total), free, total) }
}

/// The same function of the runtime library.
///
/// # Safety
/// The contract of the function of this name in CUDA's headers applies.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> c_int {
    // SAFETY: the caller keeps the contract of the function, which then meets that of
    // `clamp_figures`.
    unsafe { clamp_figures(next::cudaMemGetInfo(free, total), free, total) }
}

/// Reduces the driver's figures to the limit.
///
/// # Safety
/// Each pointer must be null or valid for writes. If `result` is success, the call must have
/// written a number to each pointer that is not null.
unsafe fn clamp_figures(result: c_int, free: *mut usize, total: *mut usize) -> c_int {
    if result == SUCCESS
        && is_set()
        && let Some(remaining) = remaining(space::device())
    {
        // The smaller of both figures, because other processes can have left fewer bytes.
        for (figure, most) in [(free, remaining), (total, LIMIT.load(Relaxed))] {
            // SAFETY: by this function's contract, the pointer is null or points to a number that
            // the driver has written.
            if let Some(figure) = unsafe { figure.as_mut() } {
                *figure = (*figure).min(usize::try_from(most).unwrap_or(usize::MAX));
            }
        }
    }
    result
}
