//! The CUDA version that the simulated driver and libraries report.

use std::ffi::c_int;

/// CUDA 13.0 in the driver's notation.
pub(crate) const VERSION: c_int = 13_000;
