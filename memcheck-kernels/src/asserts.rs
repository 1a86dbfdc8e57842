//! Asserts of kernels that failed. On a device such a launch succeeds, and then every call that
//! touches the device returns `CUDA_ERROR_ASSERT`, for the rest of the process.
//! The error belongs to the test and not to the device, so that a test with it has failed.

use std::fmt;

/// An id outside of the dim that a kernel selects from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAssert {
    /// The name of the kernel, such as `is_u32_f32`.
    pub kernel: String,
    /// The first id that is outside of the dim.
    pub id: i64,
    /// The size of the dim.
    pub dim: u64,
}

impl fmt::Display for FailedAssert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, id, dim } = self;
        write!(f, "the kernel {kernel} got the id {id}, which is not in 0..{dim}")
    }
}
