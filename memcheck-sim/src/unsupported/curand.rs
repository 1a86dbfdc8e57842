//! cuRAND: quasi-random numbers and distributions.
//!
//! The names that cudarc 0.19.10 binds and the simulator does not answer. A
//! call prints its name and gives `CURAND_STATUS_INTERNAL_ERROR`.

use crate::refused::unsupported;

unsupported! { 999;
    curandCreateGeneratorHost curandCreatePoissonDistribution curandDestroyDistribution
    curandGeneratePoissonMethod curandGetDirectionVectors32 curandGetDirectionVectors64
    curandGetProperty curandGetScrambleConstants32 curandGetScrambleConstants64
}
