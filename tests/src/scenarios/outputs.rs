//! Additional outputs of a model that are collected for ever.

use candle_core::{D, DType, Result, Tensor};
use candle_nn::ops::softmax;
use memcheck_runtime::Trial;

use super::{Family, HISTORY, Scenario, scenario};

const SOURCE: &str = include_str!("outputs.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, attention_weights, "outputs-collected", Steady),
    scenario!(SOURCE, hidden_states_of_every_layer, "tensor-kept", Steady),
];

const LAYERS: usize = 2;
const HEADS: usize = 2;
const SEQ: usize = 16;
const WIDTH: usize = 32;

/// `output_attentions` left on.
pub mod attention_weights {
    use super::*;

    /// `layers heads seq²` of f32.
    pub fn bytes(_leg: Family) -> u64 {
        (LAYERS * HEADS * SEQ * SEQ * 4) as u64
    }

    /// Keeps the weights of every forward pass.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Keeps the weights of one forward pass.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, before: fn(&mut Vec<Tensor>)) -> anyhow::Result<()> {
        let hidden = Tensor::zeros((HEADS, SEQ, WIDTH / HEADS), DType::F32, trial.device())?;
        let mut attentions = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            before(&mut attentions);
            let _forward = tracing::info_span!("forward_pass").entered();
            let mut state = hidden.clone();
            for layer in 0..LAYERS {
                let _layer = tracing::info_span!("attention", layer).entered();
                let scores = state.matmul(&state.t()?)?;
                // leaks: attention_weights
                let weights = softmax(&scores, D::Minus1)?;
                state = weights.matmul(&state)?;
                attentions.push(weights);
            }
            Ok(())
        })
    }
}

/// The hidden states after every layer, in a probe that was meant for one text.
pub mod hidden_states_of_every_layer {
    use super::*;

    /// `layers seq width` of f32.
    pub fn bytes(_leg: Family) -> u64 {
        (LAYERS * SEQ * WIDTH * 4) as u64
    }

    /// Keeps the states of every text.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| Ok(()))
    }

    /// Computes a number from each state and drops the states.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |states| {
            for state in states.drain(..) {
                state.mean_all()?.to_scalar::<f32>()?;
            }
            Ok(())
        })
    }

    fn run(trial: &mut Trial, after: fn(&mut Vec<Tensor>) -> Result<()>) -> anyhow::Result<()> {
        let embedded = Tensor::zeros((SEQ, WIDTH), DType::F32, trial.device())?;
        let weight = Tensor::zeros((WIDTH, WIDTH), DType::F32, trial.device())?;
        let mut states = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            let mut state = embedded.clone();
            for _ in 0..LAYERS {
                // leaks: hidden_states_of_every_layer
                state = state.matmul(&weight)?;
                states.push(state.clone());
            }
            Ok(after(&mut states)?)
        })
    }
}
