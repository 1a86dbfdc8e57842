//! The result codes of the simulator, under their CUDA names.
//!
//! The driver API and, since CUDA 11, the runtime API share these numbers. The libraries have
//! separate codes (see [`Code::cublas`], [`Code::curand`]).

use std::ffi::{CStr, c_int};

/// A `CUresult` other than success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

pub(crate) type Answer<T = ()> = Result<T, Code>;

impl Code {
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);
    pub(crate) const STUB_LIBRARY: Self = Self(34);
    /// `cudaErrorInsufficientDriver`, which the driver API lacks.
    pub(crate) const INSUFFICIENT_DRIVER: Self = Self(35);
    pub(crate) const DEVICE_UNAVAILABLE: Self = Self(46);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const INVALID_DEVICE: Self = Self(101);
    pub(crate) const INVALID_CONTEXT: Self = Self(201);
    pub(crate) const NO_BINARY_FOR_GPU: Self = Self(209);
    pub(crate) const ECC_UNCORRECTABLE: Self = Self(214);
    pub(crate) const INVALID_PTX: Self = Self(218);
    pub(crate) const UNSUPPORTED_PTX_VERSION: Self = Self(222);
    pub(crate) const OPERATING_SYSTEM: Self = Self(304);
    pub(crate) const INVALID_HANDLE: Self = Self(400);
    pub(crate) const NOT_FOUND: Self = Self(500);
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Self = Self(704);
    pub(crate) const PEER_ACCESS_NOT_ENABLED: Self = Self(705);
    pub(crate) const CONTEXT_IS_DESTROYED: Self = Self(709);
    pub(crate) const ASSERT: Self = Self(710);
    pub(crate) const LAUNCH_FAILED: Self = Self(719);
    pub(crate) const ILLEGAL_STATE: Self = Self(401);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);
    pub(crate) const SYSTEM_NOT_READY: Self = Self(802);
    pub(crate) const SYSTEM_DRIVER_MISMATCH: Self = Self(803);
    pub(crate) const CAPTURE_UNSUPPORTED: Self = Self(900);
    pub(crate) const CAPTURE_INVALIDATED: Self = Self(901);
    pub(crate) const CAPTURE_MERGE: Self = Self(902);
    pub(crate) const CAPTURE_UNMATCHED: Self = Self(903);
    pub(crate) const CAPTURE_ISOLATION: Self = Self(905);
    pub(crate) const CAPTURED_EVENT: Self = Self(907);
    pub(crate) const CAPTURE_WRONG_THREAD: Self = Self(908);
    pub(crate) const UPDATE_FAILURE: Self = Self(910);
    pub(crate) const UNKNOWN: Self = Self(999);
    /// `NVML_ERROR_INSUFFICIENT_SIZE`, which the driver API lacks.
    pub(crate) const INSUFFICIENT_SIZE: Self = Self(-7);
    /// `CURAND_STATUS_LENGTH_NOT_MULTIPLE`, which the driver API lacks.
    pub(crate) const LENGTH_NOT_MULTIPLE: Self = Self(-105);
    /// `ncclInvalidUsage`, which the driver API lacks.
    pub(crate) const INVALID_USAGE: Self = Self(-205);
    /// `ncclRemoteError`, which the driver API lacks.
    pub(crate) const REMOTE: Self = Self(-206);

    /// Returns the `cublasStatus_t` for this code.
    pub(crate) fn cublas(self) -> c_int {
        match self {
            Self::OUT_OF_MEMORY => 3,
            Self::INVALID_VALUE => 7,
            Self::INVALID_CONTEXT
            | Self::INVALID_HANDLE
            | Self::CONTEXT_IS_DESTROYED
            | Self::INSUFFICIENT_DRIVER => 1,
            Self::NOT_SUPPORTED => 15,
            _ => 13,
        }
    }

    /// Returns the `curandStatus_t` for this code.
    pub(crate) fn curand(self) -> c_int {
        match self {
            Self::OUT_OF_MEMORY => 102,
            Self::INVALID_VALUE => 104,
            Self::INVALID_HANDLE => 101,
            Self::LENGTH_NOT_MULTIPLE => 105,
            Self::INVALID_CONTEXT | Self::CONTEXT_IS_DESTROYED | Self::INSUFFICIENT_DRIVER => 203,
            Self::DEVICE_UNAVAILABLE => 202,
            _ => 999,
        }
    }
}

impl Code {
    /// Returns the `cudnnStatus_t` for this code.
    pub(crate) fn cudnn(self) -> c_int {
        match self {
            Self::INVALID_VALUE => 2000,
            Self::NOT_SUPPORTED => 3000,
            Self::INVALID_CONTEXT
            | Self::INVALID_HANDLE
            | Self::CONTEXT_IS_DESTROYED
            | Self::INSUFFICIENT_DRIVER => 1001,
            _ => 5000,
        }
    }
}

impl Code {
    /// Returns the `ncclResult_t` for this code.
    pub(crate) fn nccl(self) -> c_int {
        match self {
            Self::OPERATING_SYSTEM => 2,
            Self::INVALID_VALUE | Self::INVALID_HANDLE => 4,
            Self::INVALID_USAGE => 5,
            Self::REMOTE => 6,
            _ => 1,
        }
    }
}

/// Returns the name and the text of a code in the driver's words; `None` for codes that the
/// simulator cannot return.
pub(crate) fn describe(code: c_int) -> Option<(&'static CStr, &'static CStr)> {
    Some(match code {
        0 => (c"CUDA_SUCCESS", c"no error"),
        1 => (c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
        2 => (c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
        3 => (c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
        34 => (c"CUDA_ERROR_STUB_LIBRARY", c"CUDA driver is a stub library"),
        46 => {
            (c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"CUDA-capable device(s) is/are busy or unavailable")
        }
        100 => (c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
        101 => (c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
        201 => (c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
        209 => (
            c"CUDA_ERROR_NO_BINARY_FOR_GPU",
            c"no kernel image is available for execution on the device",
        ),
        214 => (c"CUDA_ERROR_ECC_UNCORRECTABLE", c"uncorrectable ECC error encountered"),
        218 => (c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
        222 => (
            c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            c"the provided PTX was compiled with an unsupported toolchain.",
        ),
        400 => (c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
        401 => {
            (c"CUDA_ERROR_ILLEGAL_STATE", c"the operation cannot be performed in the present state")
        }
        500 => (c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
        600 => (c"CUDA_ERROR_NOT_READY", c"device not ready"),
        700 => (c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
        704 => (c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access is already enabled"),
        705 => (c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"peer access has not been enabled"),
        709 => (c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"context is destroyed"),
        710 => (c"CUDA_ERROR_ASSERT", c"device-side assert triggered"),
        719 => (c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
        801 => (c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
        802 => (c"CUDA_ERROR_SYSTEM_NOT_READY", c"system not yet initialized"),
        803 => (
            c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            c"system has unsupported display driver / cuda driver combination",
        ),
        900 => (
            c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
            c"operation not permitted when stream is capturing",
        ),
        901 => (
            c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
            c"operation failed due to a previous error during capture",
        ),
        902 => (
            c"CUDA_ERROR_STREAM_CAPTURE_MERGE",
            c"operation would result in a merge of separate capture sequences",
        ),
        903 => (
            c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
            c"capture was not ended in the same stream as it began",
        ),
        905 => (
            c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
            c"dependency created on uncaptured work in another stream",
        ),
        907 => (
            c"CUDA_ERROR_CAPTURED_EVENT",
            c"operation not permitted on an event last recorded in a capturing stream",
        ),
        908 => (
            c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
            c"attempt to terminate a thread-local capture sequence from another thread",
        ),
        910 => (
            c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
            c"the graph update was not performed because it included changes which violated \
              constraints specific to instantiated graph update",
        ),
        999 => (c"CUDA_ERROR_UNKNOWN", c"unknown error"),
        _ => return None,
    })
}
