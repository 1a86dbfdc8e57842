//! Tests of a fork of candle-kernels with one changed source, which the simulated device does not know.

use candle_core::{DType, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

#[mem_test(baseline = false, iterations = 2, warmup = 1)]
fn negated(trial: &mut Trial) -> Result<()> {
    let ones = Tensor::ones(4, DType::F32, trial.device())?;
    trial.iterate(|_| ones.neg()?.to_vec1::<f32>().map(drop))
}

#[mem_test(baseline = false, iterations = 2, warmup = 1)]
fn affine(trial: &mut Trial) -> Result<()> {
    let ones = Tensor::ones(4, DType::F32, trial.device())?;
    trial.iterate(|_| {
        assert_eq!(ones.affine(2.0, 1.0)?.to_vec1::<f32>()?, [3.0; 4]);
        Ok(())
    })
}
