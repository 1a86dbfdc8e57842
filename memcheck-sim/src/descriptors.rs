//! Descriptors of cuDNN, which hold the shapes of tensors, filters and convolutions.

use memcheck_kernels::{Convolution, Tensor};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Descriptor {
    /// Created, but not set.
    EmptyTensor,
    EmptyFilter,
    EmptyConvolution,
    Tensor(Tensor),
    Filter(Tensor),
    Convolution(Convolution),
}
