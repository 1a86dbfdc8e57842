//! BERT: one forward pass an iteration.

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
    let bert = Bert::base(trial.device())?;
    assert_allocated(trial, 435_566_592);
    let inputs = bert.inputs(8, 128)?;
    trial.iterate(|_| {
        bert.forward(&inputs)?;
        Ok(())
    })
}
