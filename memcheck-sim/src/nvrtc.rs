//! The run-time compiler, which is not simulated and reports that.

use std::ffi::{c_char, c_int};

use crate::code::{Answer, Code};
use crate::ffi::{Out, Symbol, exports};

/// Converts to `nvrtcResult`.
fn nvrtc(answer: Answer) -> c_int {
    match answer {
        Ok(()) => 0,
        Err(Code::INVALID_VALUE) => 3,
        Err(_) => 11,
    }
}

exports! { nvrtc;
    fn nvrtcVersion(major: Out<c_int>, minor: Out<c_int>) {
        major.put(crate::driver::VERSION / 1000)?;
        minor.put(0)
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvrtcGetErrorString(result: c_int) -> *const c_char {
    match result {
        0 => c"NVRTC_SUCCESS",
        3 => c"NVRTC_ERROR_INVALID_INPUT",
        _ => c"NVRTC_ERROR_INTERNAL_ERROR: memcheck-sim does not compile",
    }
    .as_ptr()
}

/// The function that does not return a result code.
pub(crate) static OTHERS: &[Symbol] =
    &[Symbol { name: "nvrtcGetErrorString", address: nvrtcGetErrorString as *const () }];
