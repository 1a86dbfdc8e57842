//! Of `functional/reports.rs`: a matmul of 16 KiB per iteration. One of the tests keeps 4 KiB of it.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

#[mem_test(baseline = false, max_growth = "1 KiB")]
fn leaky(trial: &mut Trial) -> Result<()> {
    let input = Tensor::zeros((64, 64), DType::F32, trial.device())?;
    let mut kept = Vec::with_capacity(64);
    trial.iterate(|_| {
        let _span = tracing::info_span!("forward").entered();
        let output = input.matmul(&input)?;
        kept.push(output.narrow(0, 0, 16)?.force_contiguous()?); // line: kept
        Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn clean(device: &Device) -> Result<()> {
    let input = Tensor::zeros((64, 64), DType::F32, device)?;
    input.matmul(&input)?;
    Ok(())
}
