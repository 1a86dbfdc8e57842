//! Training a deep transformer with and without checkpoints: the gradients are equal, and the
//! checkpointed step holds the activations of a few layers instead of all.

use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::checkpointing::{ACTIVATION_BYTES, Deep, GRADIENT_BYTES};

/// The number of layers, and the layers in a segment, which is its square root.
const LAYERS: usize = 16;
const SEGMENT: usize = 4;

#[mem_test(max_growth = "0 B", iterations = 2, warmup = 1)]
fn train_plain(trial: &mut Trial) -> anyhow::Result<()> {
    let deep = Deep::new(LAYERS, trial.device())?;
    trial.iterate(|_| {
        deep.plain()?;
        Ok(())
    })
}

#[mem_test(max_growth = "0 B", max_peak = "0.6 x train_plain", iterations = 2, warmup = 1)]
fn train_checkpointed(trial: &mut Trial) -> anyhow::Result<()> {
    let deep = Deep::new(LAYERS, trial.device())?;
    trial.iterate(|_| {
        deep.checkpointed(SEGMENT)?;
        Ok(())
    })
}

/// The peak of `step` in bytes, minus the bytes that were live before it.
fn needed<R>(
    trial: &mut Trial,
    step: impl FnOnce() -> candle_core::Result<R>,
) -> anyhow::Result<usize> {
    trial.reset_peak();
    let before = trial.usage().allocated;
    step()?;
    Ok((trial.usage().peak_allocated - before) as usize)
}

/// Checks how the peak of a step grows with the number of layers L. Each layer adds its activations
/// and its gradient to the peak of a plain step. It adds only its gradient to the peak of a
/// checkpointed step, which holds the activations of one segment: with segments of sqrt L layers,
/// O(sqrt L). A checkpointed step reaches its peak in the segment that it computes last, the first
/// one, because all other gradients exist then and all other borders are freed. The constant part
/// of each peak is measured with the smallest model of its kind.
#[mem_test(
    cases(layers = [4, 16, 36, 64]),
    device = "cuda",
    baseline = false,
    warmup = 0,
    iterations = 1
)]
fn peaks(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    let layers: usize = trial.case("layers")?;
    let segment = layers.isqrt();
    let deep = |layers| Deep::new(layers, &device);
    let (one, two, all) = (deep(1)?, deep(2)?, deep(layers)?);
    trial.iterate(|_| ());

    let plain = needed(trial, || all.plain())?;
    let of_one = needed(trial, || one.plain())?;
    assert_eq!(plain, of_one + (layers - 1) * (ACTIVATION_BYTES + GRADIENT_BYTES));

    let checkpointed = needed(trial, || all.checkpointed(segment))?;
    let of_two = needed(trial, || two.checkpointed(1))?;
    let grown = (layers - 2) * GRADIENT_BYTES + (segment - 1) * ACTIVATION_BYTES;
    assert_eq!(checkpointed, of_two + grown);
    Ok(())
}
