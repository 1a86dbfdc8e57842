//! Training a deep transformer, plain and checkpointed: the same gradients, and
//! activations of a few layers in place of all.

use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::checkpointing::{ACTIVATION_BYTES, Deep, GRADIENT_BYTES};

/// Layers, and layers in a segment: its square root.
const LAYERS: usize = 16;
const SEGMENT: usize = 4;

#[mem_test(max_growth = "0 B", iterations = 4)]
fn train_plain(trial: &mut Trial) -> anyhow::Result<()> {
    let deep = Deep::new(LAYERS, trial.device())?;
    trial.iterate(|_| {
        deep.plain()?;
        Ok(())
    })
}

#[mem_test(max_growth = "0 B", max_peak = "0.6 x train_plain", iterations = 4)]
fn train_checkpointed(trial: &mut Trial) -> anyhow::Result<()> {
    let deep = Deep::new(LAYERS, trial.device())?;
    trial.iterate(|_| {
        deep.checkpointed(SEGMENT)?;
        Ok(())
    })
}

/// Bytes that `step` needs at most, beside what was live before.
fn needed<R>(
    trial: &mut Trial,
    step: impl FnOnce() -> candle_core::Result<R>,
) -> anyhow::Result<usize> {
    trial.reset_peak();
    let before = trial.usage().allocated;
    step()?;
    Ok((trial.usage().peak_allocated - before) as usize)
}

/// What a step needs grows by a layer's activations and gradient with every layer;
/// a checkpointed one by its gradient, and by activations with every layer of a
/// segment: with segments of sqrt L, O(sqrt L). The peak is in the segment that comes
/// last, the first one, when all other gradients are there and all other borders
/// gone. What does not grow is taken from the smallest of each kind.
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
