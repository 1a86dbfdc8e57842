//! BERT: one forward pass per iteration.

use candle_core::DType;
use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::bert::Bert;

use crate::assert_allocated;

#[mem_test(max_growth = "0 B")]
fn forward(trial: &mut Trial) -> anyhow::Result<()> {
    let bert = Bert::tiny(trial.device())?;
    // Weights: 4 bytes for each parameter of the formula in `bert::parameters`.
    assert_allocated(trial, bert.weight_bytes());
    let inputs = bert.inputs(2, 32)?;
    trial.iterate(|_| {
        bert.forward(&inputs)?;
        Ok(())
    })
}

#[mem_test(device = "cuda", max_growth = "0 B")]
fn base_forward_b8_s128(trial: &mut Trial) -> anyhow::Result<()> {
    let bert = Bert::base(trial.device(), DType::F32)?;
    assert_allocated(trial, 435_566_592);
    let inputs = bert.inputs(8, 128)?;
    trial.iterate(|_| {
        bert.forward(&inputs)?;
        Ok(())
    })
}

/// Every dtype and batch has its own limits and its own baseline, on a card of 24 GB. A half type
/// needs half the bytes of f32, except for the inputs, which are always u32, and for the 96 bytes
/// of a kernel.
#[mem_test(
    cases(dtype = [f32, f16, bf16], batch = [1, 8]),
    device = "cuda",
    fits = "rtx4090",
    max_growth = "0 B"
)]
fn base_forward_s128(trial: &mut Trial) -> anyhow::Result<()> {
    let (dtype, batch): (DType, usize) = (trial.case("dtype")?, trial.case("batch")?);
    let bert = Bert::base(trial.device(), dtype)?;
    // 108,891,648 parameters.
    assert_allocated(trial, 108_891_648 * dtype.size_in_bytes());
    let inputs = bert.inputs(batch, 128)?;
    trial.iterate(|_| {
        bert.forward(&inputs)?;
        anyhow::Ok(())
    })?;
    assert_eq!(trial.usage().peak_allocated, bert.forward_peak_bytes(batch, 128) as u64);
    Ok(())
}
