//! Tables of the functions that are not simulated, one per library; see `refused`. The tables are
//! generated: `just bindings` writes them from cudarc's bindings.

use crate::ffi::Symbol;

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
    others::TEXTS,
    others::SIZES,
];

const NOT_SUPPORTED: &std::ffi::CStr = c"not supported by memcheck-sim";

/// Functions that return a text, which is always the same.
macro_rules! texts {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(_status: std::ffi::c_int) -> *const std::ffi::c_char {
                super::NOT_SUPPORTED.as_ptr()
            }
        )*
        pub(crate) static TEXTS: &[$crate::ffi::Symbol] =
            &[$($crate::ffi::Symbol { name: stringify!($name), address: $name as *const () }),*];
    };
}

/// Functions that return a number, which is always 0.
macro_rules! sizes {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name() -> usize {
                $crate::refused::refuse(stringify!($name));
                0
            }
        )*
        pub(crate) static SIZES: &[$crate::ffi::Symbol] =
            &[$($crate::ffi::Symbol { name: stringify!($name), address: $name as *const () }),*];
    };
}

// Below the macros that its tables use.
mod others;
