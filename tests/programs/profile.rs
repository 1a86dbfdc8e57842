//! Of `functional/profile.rs`.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

/// Weights of 64 KiB, a matmul of 16 KiB per iteration in a span, and a leak of 4 KiB per
/// iteration.
#[mem_test(baseline = false, max_growth = "1 KiB")]
fn layers_leaky(trial: &mut Trial) -> Result<()> {
    let weights = Tensor::zeros((256, 64), DType::F32, trial.device())?;
    let input = Tensor::zeros((64, 256), DType::F32, trial.device())?;
    let mut kept = Vec::with_capacity(64);
    trial.iterate(|_| {
        let _span = tracing::info_span!("forward").entered();
        let output = input.matmul(&weights)?;
        let _inner = tracing::info_span!("keep").entered();
        kept.push(output.narrow(0, 0, 16)?.force_contiguous()?); // line: kept
        Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn layers(device: &Device) -> Result<()> {
    Tensor::zeros(1024, DType::F32, device)?.affine(2.0, 1.0)?;
    Ok(())
}
