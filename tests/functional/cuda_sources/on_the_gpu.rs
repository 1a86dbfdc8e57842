//! A test of a crate whose dependencies always switch candle's `cuda` on.

use memcheck_runtime::{Trial, mem_test};

#[mem_test(baseline = false, max_growth = "0 B")]
fn clean(trial: &mut Trial) -> candle_core::Result<()> {
    trial.iterate(|_| on_the_gpu::zeros(trial.device()).map(drop))
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn leaky(trial: &mut Trial) -> candle_core::Result<()> {
    let mut kept = Vec::with_capacity(2000);
    trial.iterate(|_| Ok(kept.push(on_the_gpu::zeros(trial.device())?)))
}

/// A program that takes a GPU if there is one, as those do whose default feature switches CUDA on.
fn first_gpu() -> Result<candle_core::Device, String> {
    candle_core::Device::new_cuda(0).map_err(|error| format!("{error:?}"))
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn opens_a_gpu(trial: &mut Trial) -> candle_core::Result<()> {
    let opened = first_gpu();
    assert_eq!(opened.is_ok(), trial.device().is_cuda());
    if let Err(error) = &opened {
        // The driver's code, and its text.
        assert!(error.contains("CUDA_ERROR_NO_DEVICE"), "{error}");
        assert!(error.contains("no CUDA-capable device is detected"), "{error}");
    }
    let device = opened.unwrap_or(candle_core::Device::Cpu);
    trial.iterate(|_| on_the_gpu::zeros(&device).map(drop))
}
