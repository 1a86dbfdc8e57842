//! The three forms of a memory test, each as small as possible.

use candle_core::{DType, Device, Tensor};
use memcheck_runtime::{Trial, mem_test};

#[mem_test(max_growth_mb = 1.0)]
fn full_control(trial: &mut Trial) -> anyhow::Result<()> {
    let weights = Tensor::zeros((64, 64), DType::F32, trial.device())?;
    trial.iterate(|_i| {
        weights.matmul(&weights)?;
        Ok(())
    })
}

#[mem_test]
fn one_iteration_on_a_device(device: &Device) -> candle_core::Result<()> {
    Tensor::zeros((64, 64), DType::F32, device)?.affine(2.0, 1.0)?;
    Ok(())
}

#[mem_test(iterations = 50)]
fn one_iteration() {
    let text = "a".repeat(5000);
    assert_eq!(text.len(), 5000);
}

#[mem_test(baseline = false)]
#[should_panic(expected = "on purpose")]
fn a_panic_that_is_expected(trial: &mut Trial) {
    let _tensor = Tensor::zeros(1024, DType::F32, trial.device()).unwrap();
    panic!("on purpose");
}

#[mem_test(max_allocations = 1, baseline = false)]
fn an_iteration_with_one_allocation(device: &Device) -> candle_core::Result<()> {
    Tensor::zeros(1024, DType::F32, device)?;
    Ok(())
}

/// A cache before its first token: candle does not allocate memory for it, and the test must not
/// fail.
#[mem_test(max_growth = "0 B", max_allocations = 1, baseline = false, device = "cuda")]
fn empty_tensors(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let keys = Tensor::zeros((4, 0, 64), DType::F32, &device)?;
    let query = Tensor::zeros((4, 1, 64), DType::F32, &device)?;
    trial.iterate(|_| {
        let scores = query.matmul(&keys.transpose(1, 2)?.contiguous()?)?;
        assert_eq!(scores.dims(), [4, 1, 0]);
        let cache = Tensor::cat(&[&keys, &query], 1)?;
        assert_eq!(cache.dims(), [4, 1, 64]);
        Ok(())
    })
}
