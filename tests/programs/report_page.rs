//! Of `functional/report_page.rs`.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

/// Weights of 64 KiB, a product of 16 KiB in each iteration, and 4 KiB of it that is kept.
#[mem_test(baseline = false, max_growth = "1 KiB")]
fn leaky(trial: &mut Trial) -> Result<()> {
    let weights = Tensor::zeros((64, 256), DType::F32, trial.device())?;
    let mut kept = Vec::with_capacity(64);
    trial.iterate(|_| {
        let output = weights.matmul(&weights.t()?)?;
        kept.push(output.narrow(0, 0, 16)?.force_contiguous()?);
        Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn clean(device: &Device) -> Result<()> {
    Tensor::zeros((64, 64), DType::F32, device)?;
    Ok(())
}
