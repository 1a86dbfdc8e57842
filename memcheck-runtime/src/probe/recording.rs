//! Recordings of the driver's allocation calls in their order, for comparisons of one device with
//! another.
//!
//! A recording takes a lock at every call and must not be used for measurements.

use std::ffi::c_int;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use memcheck_core::quiet;

static ON: AtomicBool = AtomicBool::new(false);
static CALLS: Mutex<Vec<DriverCall>> = Mutex::new(Vec::new());

/// One call of the CUDA driver or of its runtime library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverCall {
    /// The name of the function.
    pub name: &'static str,
    /// The requested bytes, or the bytes of the freed block; 0 for an unknown block.
    pub bytes: u64,
    /// The return value of the call; 0 is success.
    pub result: c_int,
}

impl fmt::Display for DriverCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, bytes, result } = self;
        match result {
            0 => write!(f, "{name} {bytes}"),
            error => write!(f, "{name} {bytes} = {error}"),
        }
    }
}

/// Runs `work` and returns its result with the calls that all threads made in the meantime.
/// Recordings must not overlap.
pub fn record<R>(work: impl FnOnce() -> R) -> (R, Vec<DriverCall>) {
    // Off after a panic of `work` too.
    struct Off;
    impl Drop for Off {
        fn drop(&mut self) {
            ON.store(false, SeqCst);
        }
    }
    let take_calls = || {
        let _quiet = quiet::enter();
        std::mem::take(&mut *CALLS.lock().unwrap_or_else(PoisonError::into_inner))
    };
    // A thread that had read the flag just before it was cleared can have left a call.
    drop(take_calls());
    ON.store(true, SeqCst);
    let off = Off;
    let result = work();
    drop(off);
    (result, take_calls())
}

/// Records a call.
#[cfg(feature = "cuda")]
#[inline]
pub(super) fn add(name: &'static str, bytes: u64, result: c_int) {
    if ON.load(std::sync::atomic::Ordering::Relaxed) {
        let _quiet = quiet::enter();
        let call = DriverCall { name, bytes, result };
        CALLS.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
}
