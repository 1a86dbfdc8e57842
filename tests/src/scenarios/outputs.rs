//! Additional outputs of a model that are collected for ever.

use candle_core::{D, DType, Result, Tensor};
use candle_nn::ops::{softmax, softmax_last_dim};
use memcheck_runtime::Trial;

use super::{Family, HISTORY, Scenario, scenario};

const SOURCE: &str = include_str!("outputs.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, attention_weights, "outputs-collected", Steady),
    scenario!(SOURCE, attention_of_every_image, "outputs-collected", Steady),
    scenario!(SOURCE, weights_of_every_token, "outputs-collected", Steady),
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

/// The weights of an encoder for images, for a page that draws them over the image.
pub mod attention_of_every_image {
    use super::*;

    const BATCH: usize = 2;

    /// `layers batch heads seq²` of f32.
    pub fn bytes(_leg: Family) -> u64 {
        (LAYERS * BATCH * HEADS * SEQ * SEQ * 4) as u64
    }

    /// Keeps the weights of every image.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Keeps the weights of the image that is shown.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, before: fn(&mut Vec<Tensor>)) -> anyhow::Result<()> {
        let image = Tensor::zeros((BATCH, HEADS, SEQ, WIDTH / HEADS), DType::F32, trial.device())?;
        let mut shown = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            before(&mut shown);
            let mut state = image.clone();
            for _ in 0..LAYERS {
                let (next, weights) = attend(&state)?;
                shown.push(weights);
                state = next;
            }
            Ok(())
        })
    }

    /// The new state and the weights.
    fn attend(state: &Tensor) -> Result<(Tensor, Tensor)> {
        let scores = state.matmul(&state.transpose(2, 3)?)?;
        // leaks: attention_of_every_image
        let weights = softmax_last_dim(&scores)?;
        Ok((weights.matmul(state)?, weights))
    }
}

/// The weights of every generated token over the keys of the prompt, to show its sources.
pub mod weights_of_every_token {
    use super::*;

    /// Keys of the prompt.
    const KEYS: usize = 256;

    /// `heads keys` of f32.
    pub fn bytes(_leg: Family) -> u64 {
        (HEADS * KEYS * 4) as u64
    }

    /// Keeps the weights of every token.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let mut attention = Attention::new(trial)?;
        Ok(trial.iterate(|_| attention.forward().map(drop))?)
    }

    /// Takes the strongest key of each token.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let mut attention = Attention::new(trial)?;
        trial.iterate(|_| {
            attention.forward()?;
            for weights in attention.weights.drain(..) {
                weights.argmax(D::Minus1)?.flatten_all()?.to_vec1::<u32>()?;
            }
            anyhow::Ok(())
        })
    }

    struct Attention {
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        weights: Vec<Tensor>,
    }

    impl Attention {
        fn new(trial: &Trial) -> Result<Self> {
            let zeros =
                |rows| Tensor::zeros((1, HEADS, rows, WIDTH / HEADS), DType::F32, trial.device());
            let weights = Vec::with_capacity(HISTORY);
            Ok(Self { query: zeros(1)?, keys: zeros(KEYS)?, values: zeros(KEYS)?, weights })
        }

        fn forward(&mut self) -> Result<Tensor> {
            let scores = self.query.matmul(&self.keys.transpose(2, 3)?)?;
            // leaks: weights_of_every_token
            let weights = softmax(&scores, D::Minus1)?;
            let state = weights.matmul(&self.values)?;
            self.weights.push(weights);
            Ok(state)
        }
    }
}
