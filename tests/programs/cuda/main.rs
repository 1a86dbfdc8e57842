//! The memory tests that the functional tests run only on GPUs, because they name cudarc.

mod cublaslt;
mod graphs;
mod simulated;
mod unified;
mod values;
