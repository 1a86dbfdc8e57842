//! The version of CUDA that all of it claims to be.

use std::ffi::c_int;

/// As the driver spells it: 13.0.
pub(crate) const VERSION: c_int = 13_000;
