//! `largest_batch`: the result is exact on a simulated device, however the memory runs out, and no
//! memory is kept across the attempts.

use std::ops::RangeInclusive;

use candle_core::{DType, Device, Result, Tensor, bail};
use candle_transformers::models::llama::Config;
use memcheck_runtime::{LargestBatch, LargestBatchError, Trial, largest_batch, mem_test};
use memcheck_tests::llama::{Llama, parameters, tiny_config};

const MIB: u64 = 1 << 20;

/// Activations of 3 MiB for each element of the batch.
fn forward(batch: usize, device: &Device) -> Result<Tensor> {
    Tensor::zeros((batch, 3, 1 << 18), DType::F32, device)
}

/// The largest batch with 1 MiB of weights: (capacity - 1 MiB) / 3 MiB, rounded down.
fn expected(capacity: u64) -> usize {
    usize::try_from((capacity - MIB) / (3 * MIB)).unwrap_or(0)
}

#[mem_test(device = "cuda", fits = "64 MiB", max_growth = "0 B")]
fn on_a_full_device(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let _weights = Tensor::zeros(1 << 18, DType::F32, &device)?;
    trial.iterate(|_| {
        let mut tried = Vec::new();
        let batch = LargestBatch::new(1..=512).margin("0%").find(&device, |batch| {
            tried.push(batch);
            forward(batch, &device)
        })?;
        assert_eq!(batch, expected(64 * MIB));
        // The search halves and then bisects. The largest batch that fits and its successor must be
        // among the attempts.
        assert_eq!(tried, [512, 256, 128, 64, 32, 16, 24, 20, 22, 21]);
        // 5 % of the capacity stay free by default.
        assert_eq!(largest_batch(&device, 1..=512, |batch| forward(batch, &device))?, 19);
        let within = LargestBatch::new(1..=512).limit("10 MiB");
        assert_eq!(within.find(&device, |batch| forward(batch, &device))?, expected(10 * MIB));
        assert_eq!(largest_batch(&device, 1..=5, |batch| forward(batch, &device))?, 5);
        Ok(())
    })
}

/// `Llama::load` panics if the device has no room for a layer.
#[mem_test(device = "cuda", fits = "16 MiB", max_growth = "0 B", iterations = 2)]
fn where_the_model_panics(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    let of_layers = |layers: usize| Config { num_hidden_layers: layers, ..tiny_config() };
    trial.iterate(|_| {
        let search = LargestBatch::new(1..=1000).margin("0%");
        let layers =
            search.find(&device, |layers| Llama::new(of_layers(layers), DType::F32, &device))?;
        // Parameters of 4 bytes each: with one more layer they would exceed the capacity.
        let bytes = |layers| 4 * parameters(&of_layers(layers)) as u64;
        assert!(bytes(layers) <= 16 * MIB && 16 * MIB < bytes(layers + 1), "{layers}");
        Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn within_a_limit_on_any_device(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let _weights = Tensor::zeros(1 << 18, DType::F32, &device)?;
    trial.iterate(|_| {
        let search = LargestBatch::new(1..=512).limit("32 MiB").margin("0%");
        assert_eq!(search.find(&device, |batch| forward(batch, &device))?, expected(32 * MIB));
        Ok(())
    })
}

#[mem_test(fits = "64 MiB", baseline = false)]
fn what_has_no_answer_is_an_error(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    let search = || LargestBatch::new(1..=8).limit("64 MiB");
    let mut kept = Vec::new();
    let error = search().find(&device, |batch| -> Result<()> {
        kept.push(forward(1, &device)?);
        let _ = batch;
        Ok(())
    });
    match error {
        Err(LargestBatchError::Kept { bytes, .. }) => assert_eq!(bytes, 3 * MIB),
        other => anyhow::bail!("{other:?}"),
    }
    kept.clear();
    let error = search().find(&device, |_| -> Result<()> { bail!("another error") });
    let error: candle_core::Error = error.map(drop).expect_err("the search fails").into();
    assert!(error.to_string().starts_with("another error"), "{error}");
    let error = search().limit("2 MiB").find(&device, |batch| forward(batch, &device));
    assert!(matches!(error, Err(LargestBatchError::NoRoom { batch: 1, .. })), "{error:?}");
    for (range, expected) in
        [(0..=4, "0 cannot be tried"), (RangeInclusive::new(5, 4), "5 is above 4")]
    {
        let error = LargestBatch::new(range).limit("1 MiB").find(&device, |n| forward(n, &device));
        let error = error.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = search().margin("much").find(&device, |batch| forward(batch, &device));
    assert!(error.expect_err("a margin").to_string().contains("`much` is not a tolerance"));
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = search().find(&device, |_| -> Result<()> { panic!("another panic") });
    }));
    assert!(panics.is_err());
    Ok(())
}

#[mem_test(device = "cpu", baseline = false)]
fn the_cpu_has_no_capacity(trial: &mut Trial) {
    let device = trial.device().clone();
    let error = largest_batch(&device, 1..=8, |batch| forward(batch, &device));
    assert!(matches!(error, Err(LargestBatchError::NoCapacity)), "{error:?}");
}
