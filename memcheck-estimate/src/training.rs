//! Measures one training step: forward pass, loss, backward pass, AdamW.

use std::cell::Cell;

use candle_core::{DType, Device, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use memcheck_core::wire::estimate::{Estimate, Training};
use memcheck_runtime::reset_peak;

use crate::measure::{Loaded, ids};
use crate::problem::Problem;
use crate::question::CheckedQuestion;
use crate::stage::FailureStage;

pub(crate) fn measure(
    checked: &CheckedQuestion,
    device: &Device,
    stage: &Cell<FailureStage>,
) -> Result<Estimate, Problem> {
    let mut loaded = Loaded::load(checked, true, device)?;
    let (held, _) = loaded.usage(device);

    stage.set(FailureStage::Training);
    let variables = loaded.weights.variables();
    let mut adam = AdamW::new(variables.clone(), ParamsAdamW::default())?;
    let optimizer = loaded.usage(device).0.saturating_sub(held);
    reset_peak(device);
    let ids = ids(checked, device)?;
    let loss = loss(&loaded.model.prompt(&ids)?)?;
    let gradients = loss.backward().map_err(Problem::untrainable)?;
    let reached: Vec<&Var> =
        variables.iter().filter(|variable| gradients.get(variable).is_some()).collect();
    let bytes = |variable: &&Var| {
        let gradient = gradients.get(variable);
        gradient.map_or(0, |it| (it.elem_count() * it.dtype().size_in_bytes()) as u64)
    };
    let mut training = Training {
        variables: variables.len() as u64,
        reached: reached.len() as u64,
        gradients: reached.iter().map(bytes).sum(),
        optimizer,
        activations: 0,
        peak: 0,
    };
    adam.step(&gradients)?;
    training.peak = loaded.usage(device).1;
    training.activations = training.peak.saturating_sub(held + optimizer + training.gradients);
    let estimate = loaded.estimate(checked);
    let peak = estimate.peak.max(training.peak);
    Ok(Estimate { training: Some(training), peak, ..estimate })
}

/// Returns the cross entropy of the model's output. Some models return the last position only.
fn loss(logits: &Tensor) -> candle_core::Result<Tensor> {
    let classes = logits.dim(candle_core::D::Minus1)?;
    let logits = logits.reshape(((), classes))?.to_dtype(DType::F32)?;
    let targets = Tensor::zeros(logits.dim(0)?, DType::U32, logits.device())?;
    candle_nn::loss::cross_entropy(&logits, &targets)
}
