//! The answers of CUDA's libraries on a machine without a GPU, for a build for the CPU whose
//! dependencies switch candle's `cuda` on.
//!
//! Such a build is linked against the simulated toolkit, whose linker script (`libcuda.ld`) gives
//! each function of CUDA that no other object defines the address of one of these. A program that
//! tries to open a GPU then gets an error, as from a driver without a device, and can go on with the
//! CPU. The functions do not declare their parameters unless they use them. This is sound because in
//! the C calling conventions the caller removes the arguments.

use std::ffi::{CStr, c_char, c_int};

/// `CUDA_ERROR_NO_DEVICE` and `cudaErrorNoDevice`.
const NO_DEVICE: c_int = 100;
/// `CUDA_ERROR_INVALID_VALUE`: the driver's answer to an error code that it does not know.
const INVALID_VALUE: c_int = 1;

const NAME: &CStr = c"CUDA_ERROR_NO_DEVICE";
const DESCRIPTION: &CStr = c"no CUDA-capable device is detected";

/// Defines functions that return a status, and the table of their addresses.
macro_rules! statuses {
    ($($(#[$documentation:meta])* fn $name:ident() = $status:expr;)*) => {
        $(
            $(#[$documentation])*
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> c_int {
                $status
            }
        )*
        static STATUSES: &[extern "C" fn() -> c_int] = &[$($name),*];
    };
}

statuses! {
    /// The driver.
    fn memcheck_no_device_driver() = NO_DEVICE;
    /// The runtime library.
    fn memcheck_no_device_runtime() = NO_DEVICE;
    /// `CUBLAS_STATUS_NOT_INITIALIZED`.
    fn memcheck_no_device_cublas() = 1;
    /// `CUBLAS_STATUS_NOT_INITIALIZED`.
    fn memcheck_no_device_cublaslt() = 1;
    /// `CURAND_STATUS_INITIALIZATION_FAILED`.
    fn memcheck_no_device_curand() = 203;
    /// `NVRTC_ERROR_INTERNAL_ERROR`: a real one compiles without a GPU, but this one has no compiler.
    fn memcheck_no_device_nvrtc() = 11;
    /// `CUDNN_STATUS_NOT_INITIALIZED`.
    fn memcheck_no_device_cudnn() = 1001;
    /// `ncclUnhandledCudaError`.
    fn memcheck_no_device_nccl() = 1;
    /// A function in C that launches kernels. Its caller cannot have a GPU's memory.
    fn memcheck_no_device_launcher() = 0;
    /// A number, such as a version.
    fn memcheck_no_device_number() = 0;
}

/// A text about an error.
#[unsafe(no_mangle)]
extern "C" fn memcheck_no_device_text() -> *const c_char {
    DESCRIPTION.as_ptr()
}

/// `cuGetErrorName`.
///
/// # Safety
/// `out` must be null, or valid for a write.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcheck_no_device_error_name(code: c_int, out: *mut *const c_char) -> c_int {
    // SAFETY: the caller makes the same promise.
    unsafe { describe(NAME, code, out) }
}

/// `cuGetErrorString`.
///
/// # Safety
/// `out` must be null, or valid for a write.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcheck_no_device_error_text(code: c_int, out: *mut *const c_char) -> c_int {
    // SAFETY: the caller makes the same promise.
    unsafe { describe(DESCRIPTION, code, out) }
}

/// # Safety
/// `out` must be null, or valid for a write.
unsafe fn describe(text: &'static CStr, code: c_int, out: *mut *const c_char) -> c_int {
    let (text, status) = match code {
        NO_DEVICE => (text.as_ptr(), 0),
        _ => (std::ptr::null(), INVALID_VALUE),
    };
    if out.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller promises that `out` is valid for a write, and it is not null.
    unsafe { out.write(text) };
    status
}

/// Makes sure that the linker includes these functions, because the linker script alone does not
/// request a member of an archive from every linker.
pub(crate) fn link() {
    std::hint::black_box(STATUSES);
    std::hint::black_box(memcheck_no_device_text as extern "C" fn() -> *const c_char);
    for function in [memcheck_no_device_error_name, memcheck_no_device_error_text] {
        std::hint::black_box(function as unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(
        function: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
        code: c_int,
    ) -> (c_int, Option<&'static CStr>) {
        let mut text = c"before".as_ptr();
        // SAFETY: `text` is a local.
        let status = unsafe { function(code, &raw mut text) };
        // SAFETY: the functions write null or a constant.
        (status, (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }))
    }

    #[test]
    fn the_error_of_a_machine_without_a_gpu_has_its_name_and_its_text() {
        let status = memcheck_no_device_driver();
        assert_eq!(status, 100);
        assert_eq!(described(memcheck_no_device_error_name, status), (0, Some(NAME)));
        assert_eq!(described(memcheck_no_device_error_text, status), (0, Some(DESCRIPTION)));
        assert_eq!(described(memcheck_no_device_error_name, 2), (1, None));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { memcheck_no_device_error_text(100, std::ptr::null_mut()) }, 1);
    }
}
