//! Of `functional/insta.rs`: tests whose baselines are listed.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

#[mem_test]
fn right(device: &Device) -> Result<()> {
    Tensor::ones(8, DType::F32, device).map(drop)
}

#[mem_test(cases(seq = [64, 128, 256]), scaling(peak_allocated <= "seq"))]
fn listed(trial: &mut Trial) -> Result<()> {
    let (seq, device): (usize, _) = (trial.case("seq")?, trial.device().clone());
    trial.iterate(|_| Tensor::zeros((seq, 64), DType::F32, &device).map(drop))
}
