//! A decoder that stops at the first layer whose output is certain enough.

use candle_core::{Device, Result, Tensor};
use candle_nn::ops::softmax_last_dim;

use super::decoder::{Cache, Decoder, ROW, cache_bytes, causal_mask, weight_bytes};

/// Layers of the model.
pub const LAYERS: usize = 6;
/// The probability of the most probable token at which the model stops.
pub const CERTAIN: f32 = 0.5;
/// Tokens of a prompt.
pub const TOKENS: usize = 8;

/// Prompts that run one layer, some, and all of them.
pub const PROMPTS: [(&str, [u32; TOKENS]); 3] =
    [("easy", prompt(52)), ("medium", prompt(156)), ("hard", prompt(39))];

const fn prompt(first: u32) -> [u32; TOKENS] {
    let mut ids = [0; TOKENS];
    let mut at = 0;
    while at < TOKENS {
        ids[at] = first + 7 * at as u32;
        at += 1;
    }
    ids
}

/// A model with an exit behind each layer.
#[derive(Debug)]
pub struct EarlyExit {
    model: Decoder,
}

impl EarlyExit {
    /// A model of [`weight_bytes`] with [`LAYERS`].
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { model: Decoder::new(LAYERS, device)? })
    }

    /// Runs layers until the probability of a token reaches [`CERTAIN`]. Returns the number of
    /// layers.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn layers(&self, prompt: [u32; TOKENS]) -> Result<usize> {
        self.run(prompt, |_| ())
    }

    /// The leak: keeps the hidden states behind each layer, [`leak_bytes`] for a prompt.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn layers_keeping_states(
        &self,
        prompt: [u32; TOKENS],
        kept: &mut Vec<Tensor>,
    ) -> Result<usize> {
        self.run(prompt, |hidden| kept.push(hidden.clone()))
    }

    fn run(&self, prompt: [u32; TOKENS], mut keep: impl FnMut(&Tensor)) -> Result<usize> {
        let device = self.model.device();
        let ids = Tensor::new(&prompt, device)?;
        let mask = causal_mask(TOKENS, 0, device)?;
        let mut cache = Cache::default();
        let mut hidden = self.model.embed(&ids)?;
        for layer in 0..LAYERS {
            hidden = self.model.run_layer(layer, &hidden, mask.as_ref(), &mut cache)?;
            keep(&hidden);
            let logits = self.model.last_logits(&hidden)?;
            let certainty = softmax_last_dim(&logits)?.max(0)?.to_scalar::<f32>()?;
            if certainty >= CERTAIN {
                return Ok(layer + 1);
            }
        }
        Ok(LAYERS)
    }
}

/// The peak of live bytes for a prompt that runs this many layers, weights included. At the end of
/// the last of these layers, its input, queries, sum and output are live, and the scores twice.
pub fn peak_bytes(layers: usize) -> usize {
    let ids = 4 * TOKENS;
    let scores = 4 * TOKENS * TOKENS;
    // The mask is as large as the scores.
    let layer = 4 * TOKENS * ROW + 3 * scores;
    weight_bytes(LAYERS) + ids + cache_bytes(layers, TOKENS) + layer
}

/// Bytes that a prompt leaks which runs this many layers.
pub fn leak_bytes(layers: usize) -> usize {
    layers * TOKENS * ROW
}
