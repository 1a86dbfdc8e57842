//! Memory tests of transformer workloads, clean ones: each within limits of
//! zero growth, with committed baselines for the CPU and for CUDA.
//!
//! Where a closed formula exists it stands beside the assertion. It is checked
//! on CUDA, real or simulated, where every byte counts; on the CPU blocks of
//! less than 1 KiB are not part of the figures.

mod bert;
mod checkpointing;
mod forms;
mod helpers;
mod kernels;
mod largest_batch;
mod llama;
mod mixed_precision;
mod scaling;
mod sharded;
mod t5;
mod training;
mod whisper;

use memcheck_runtime::Trial;

/// Asserts the live bytes of the test's device, where that is a GPU.
fn assert_allocated(trial: &Trial, expected: usize) {
    if trial.device().is_cuda() {
        assert_eq!(trial.usage().allocated, expected as u64);
    }
}
