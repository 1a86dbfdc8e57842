//! BERT: one forward pass an iteration.

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

/// Every dtype and batch with limits and a baseline of its own, all of them on
/// a card of 24 GB. How the peaks hang together is in `dtypes` below.
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
    assert_allocated(trial, 108_891_648 * dtype.size_in_bytes() + inputs_bytes(batch));
    trial.iterate(|_| {
        bert.forward(&inputs)?;
        Ok(())
    })
}

/// Ids, token types and mask of 128 tokens, in u32 whatever the dtype.
fn inputs_bytes(batch: usize) -> usize {
    3 * batch * 128 * 4
}
