//! Generation that samples with a temperature and top-p until the end token.

use candle_core::{Device, Result, Tensor};
use candle_transformers::generation::LogitsProcessor;

use super::decoder::{Cache, Decoder, LOGITS, ROW, append_bytes, cache_bytes, weight_bytes};

/// Layers of the model.
pub const LAYERS: usize = 2;
/// The prompt of every request.
pub const PROMPT: [u32; 8] = [5, 301, 3, 99, 64, 2, 417, 41];
/// The token that ends a request.
pub const END: u32 = 474;
/// The largest number of tokens of a request.
pub const MOST: usize = 32;

/// A model that answers requests.
#[derive(Debug)]
pub struct Generator {
    model: Decoder,
}

impl Generator {
    /// A model of [`weight_bytes`] with [`LAYERS`].
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { model: Decoder::new(LAYERS, device)? })
    }

    /// Answers one request: samples until the end token or [`MOST`] tokens, and returns the tokens
    /// with the end token.
    ///
    /// # Errors
    ///
    /// When the device is full, or the probabilities of a step are not numbers.
    pub fn generate(&self, seed: u64) -> Result<Vec<u32>> {
        self.sample(seed, drop)
    }

    /// The leak: keeps the logits of each token, [`leak_bytes`] in a request.
    ///
    /// # Errors
    ///
    /// See [`Self::generate`].
    pub fn generate_keeping_logits(&self, seed: u64, kept: &mut Vec<Tensor>) -> Result<Vec<u32>> {
        self.sample(seed, |logits| kept.push(logits))
    }

    fn sample(&self, seed: u64, mut keep: impl FnMut(Tensor)) -> Result<Vec<u32>> {
        let mut sampler = LogitsProcessor::new(seed, Some(0.8), Some(0.9));
        let mut cache = Cache::default();
        let mut hidden = self.model.forward(&PROMPT, &mut cache)?;
        let mut tokens = Vec::with_capacity(MOST);
        loop {
            let logits = self.model.last_logits(&hidden)?;
            let token = sampler.sample(&logits)?;
            keep(logits);
            tokens.push(token);
            if token == END || tokens.len() == MOST {
                return Ok(tokens);
            }
            hidden = self.model.forward(&[token], &mut cache)?;
        }
    }
}

/// The peak of live bytes of a request of this many tokens, weights included: the last layer adds
/// the last token, or the sampler has logits, scaled logits and probabilities.
pub fn peak_bytes(tokens: usize) -> usize {
    let cached = PROMPT.len() + tokens - 1;
    // The hidden state of the token before is live until the new one replaces it.
    let appending = append_bytes(LAYERS, cached - 1, 1) + ROW;
    let sampling = cache_bytes(LAYERS, cached) + ROW + 3 * LOGITS;
    weight_bytes(LAYERS) + appending.max(sampling)
}

/// Bytes that a request of this many tokens leaks.
pub fn leak_bytes(tokens: usize) -> usize {
    tokens * LOGITS
}
