//! Tables of the functions that are not simulated, one per library; see `refused`.

use std::ffi::{c_char, c_int};

use crate::ffi::Symbol;
use crate::refused::refuse;

mod cublas;
mod cublaslt;
mod cudnn;
mod curand;
mod driver;
mod nccl;
mod nvrtc;
mod runtime;

pub(crate) static EXPORTS: &[&[Symbol]] = &[
    driver::EXPORTS,
    cublas::EXPORTS,
    cublaslt::EXPORTS,
    curand::EXPORTS,
    nvrtc::EXPORTS,
    runtime::EXPORTS,
    cudnn::EXPORTS,
    nccl::EXPORTS,
    TEXTS,
    SIZES,
];

const NOT_SUPPORTED: &std::ffi::CStr = c"not supported by memcheck-sim";

/// Functions that return a text, which is always the same.
macro_rules! texts {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(_status: c_int) -> *const c_char {
                NOT_SUPPORTED.as_ptr()
            }
        )*
        static TEXTS: &[Symbol] =
            &[$(Symbol { name: stringify!($name), address: $name as *const () }),*];
    };
}

texts! {
    cublasLtGetStatusName cublasLtGetStatusString ncclGetLastError
}

/// Functions that return a number, which is always 0.
macro_rules! sizes {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name() -> usize {
                refuse(stringify!($name));
                0
            }
        )*
        static SIZES: &[Symbol] =
            &[$(Symbol { name: stringify!($name), address: $name as *const () }),*];
    };
}

sizes! {
    cublasLtGetCudartVersion cublasLtGetVersion cudnnGetMaxDeviceVersion
}
