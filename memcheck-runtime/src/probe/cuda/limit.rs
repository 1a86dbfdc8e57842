//! `fits` in front of a real driver, which would give more: what does not fit is
//! refused here, as a card of that size would, and the driver is not asked.
//!
//! A simulated device is made smaller instead. Two threads that ask for the last
//! bytes at the same moment may both be given them: the peak is judged as well.
#![expect(non_snake_case, reason = "the driver's own names")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use memcheck_core::space::Space;

use super::{SUCCESS, space};
use crate::ledger;

/// Bytes that the program may hold on each device.
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// No device holds more than `bytes` from here on.
pub(crate) fn set(bytes: u64) {
    LIMIT.store(bytes, Relaxed);
}

/// Whether anything is refused at all.
#[inline]
pub(super) fn is_set() -> bool {
    LIMIT.load(Relaxed) != u64::MAX
}

/// What is left of the limit on the device `space`; `None` where there is none.
fn left(space: Option<Space>) -> Option<u64> {
    let space @ Space::Cuda(_) = space? else { return None };
    Some(LIMIT.load(Relaxed).saturating_sub(ledger::snapshot(space).live))
}

/// Whether `size` bytes more are above the limit of the device `space`.
pub(super) fn is_above(space: Option<Space>, size: usize) -> bool {
    left(space).is_some_and(|left| size as u64 > left)
}

mod next {
    use super::super::next::forwards;

    forwards! {
        fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
        fn cudaMemGetInfo(free: *mut usize, total: *mut usize);
    }
}

/// What a device of the size that is the limit would answer.
///
/// # Safety
/// As for the function of that name in CUDA's headers.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    // SAFETY: the caller keeps the function's contract.
    unsafe { smaller(next::cuMemGetInfo_v2(free, total), free, total) }
}

/// The same of the runtime library.
///
/// # Safety
/// As for the function of that name in CUDA's headers.
#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> c_int {
    // SAFETY: the caller keeps the function's contract.
    unsafe { smaller(next::cudaMemGetInfo(free, total), free, total) }
}

/// Cuts what the driver has answered down to the limit.
///
/// # Safety
/// Where `result` is success, the call has written a number to each pointer that
/// is not null.
unsafe fn smaller(result: c_int, free: *mut usize, total: *mut usize) -> c_int {
    if result == SUCCESS
        && is_set()
        && let Some(left) = left(space::device())
    {
        for (figure, most) in [(free, left), (total, LIMIT.load(Relaxed))] {
            // SAFETY: null or a number that the driver has written, by this
            // function's contract.
            if let Some(figure) = unsafe { figure.as_mut() } {
                *figure = (*figure).min(usize::try_from(most).unwrap_or(usize::MAX));
            }
        }
    }
    result
}
