//! Memory tests of clean transformer workloads. Each has a limit of zero growth, and committed
//! baselines for the CPU and for CUDA.
//!
//! An assertion with a closed formula is checked on CUDA only, real or simulated, because every
//! byte counts there. On the CPU, blocks below 1 KiB are not part of the figures.

mod bert;
mod checkpointing;
mod choices;
mod faults;
mod forms;
mod helpers;
mod kernels;
mod largest_batch;
mod learning;
mod llama;
mod mixed_precision;
mod scaling;
mod sharded;
mod t5;
mod training;
mod values;
mod whisper;

use memcheck_runtime::Trial;

/// Asserts the live bytes of the test's device, if it is a GPU.
fn assert_allocated(trial: &Trial, expected: usize) {
    if trial.device().is_cuda() {
        assert_eq!(trial.usage().allocated, expected as u64);
    }
}

/// Asserts the highest live bytes of the test's device, if it is a GPU.
fn assert_peak(trial: &Trial, expected: usize) {
    if trial.device().is_cuda() {
        assert_eq!(trial.usage().peak_allocated, expected as u64);
    }
}
