//! cuRAND: quasi-random numbers and distributions.
//!
//! Generated from the bindings of cudarc: `just bindings` writes it, and a test compares it.
//! cudarc binds these names, and the simulator does not implement them. A call prints its name
//! and returns `CURAND_STATUS_INTERNAL_ERROR`.

use crate::refused::unsupported;

unsupported! { 999;
    curandCreateGeneratorHost curandCreatePoissonDistribution curandDestroyDistribution
    curandGeneratePoissonMethod curandGetDirectionVectors32 curandGetDirectionVectors64
    curandGetProperty curandGetScrambleConstants32 curandGetScrambleConstants64
}
