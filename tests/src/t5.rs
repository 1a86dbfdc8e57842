//! T5 of candle-transformers with zero weights: encodes a source and decodes with the KV cache
//! inside the model.
//!
//! Only the decoder's self-attention has a cache. Cross-attention projects the encoder's output
//! again at every step, and the position bias is computed again too. Without
//! [`T5ForConditionalGeneration::clear_kv_cache`] the model therefore leaks the keys and values of
//! the decoded tokens only.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::t5::{Config, T5ForConditionalGeneration};

use crate::token_ids;

/// A T5 encoder and decoder in f32. The head is tied to the embeddings.
pub struct T5 {
    model: T5ForConditionalGeneration,
    config: Config,
    device: Device,
}

impl T5 {
    /// Two layers of width 64 on each side, four heads of 16.
    ///
    /// # Errors
    ///
    /// When the device cannot hold the weights.
    pub fn tiny(device: &Device) -> Result<Self> {
        Self::new(tiny_config(), device)
    }

    /// A model of any configuration. The default one is T5-small.
    ///
    /// # Errors
    ///
    /// When the device cannot hold the weights.
    pub fn new(config: Config, device: &Device) -> Result<Self> {
        let builder = VarBuilder::zeros(DType::F32, device);
        let model = T5ForConditionalGeneration::load(builder, &config)?;
        Ok(Self { model, config, device: device.clone() })
    }

    /// Ids of a source text, `(batch, seq)` of u32. A test should create them in set-up.
    ///
    /// # Errors
    ///
    /// When the device cannot hold it.
    pub fn source(&self, batch: usize, seq: usize) -> Result<Tensor> {
        token_ids(batch, seq, self.config.vocab_size, &self.device)
    }

    /// One request: clears the cache, encodes, decodes `new_tokens` tokens, and clears the cache
    /// again. Returns the last logits, `(batch, vocab)`. Growth is 0.
    ///
    /// # Errors
    ///
    /// When `new_tokens` is 0, or the device is full.
    pub fn generate(&mut self, source: &Tensor, new_tokens: usize) -> Result<Tensor> {
        self.model.clear_kv_cache();
        let logits = self.generate_without_clearing(source, new_tokens);
        self.model.clear_kv_cache();
        logits
    }

    /// The leak: the same request without clearing the cache. Each call leaks `new_tokens` times
    /// [`kv_bytes_per_token`].
    ///
    /// # Errors
    ///
    /// See [`Self::generate`].
    pub fn generate_without_clearing(
        &mut self,
        source: &Tensor,
        new_tokens: usize,
    ) -> Result<Tensor> {
        let encoded = self.model.encode(source)?;
        let token = Tensor::zeros((source.dim(0)?, 1), DType::U32, &self.device)?;
        let mut logits = None;
        for _ in 0..new_tokens {
            logits = Some(self.model.decode(&token, &encoded)?);
        }
        logits.ok_or_else(|| candle_core::Error::msg("the number of tokens is 0"))
    }

    /// Bytes of weights: 4 for each of the [`parameters`].
    pub fn weight_bytes(&self) -> usize {
        parameters(&self.config) * DType::F32.size_in_bytes()
    }

    /// The configuration of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// The configuration of [`T5::tiny`].
pub fn tiny_config() -> Config {
    Config {
        vocab_size: 512,
        d_model: 64,
        d_kv: 16,
        d_ff: 256,
        num_layers: 2,
        num_heads: 4,
        ..Config::default()
    }
}

/// The number of parameters of a configuration with a plain feed-forward and a tied head, with d
/// its width, f that of the feed-forward and a that of attention: `vocab d + (encoder layers) (4 a
/// d + 2 d f + 2 d) + (decoder layers) (8 a d + 2 d f + 3 d) + 2 (buckets heads + d)`.
pub fn parameters(config: &Config) -> usize {
    let (d, f) = (config.d_model, config.d_ff);
    let a = config.num_heads * config.d_kv;
    let encoder = config.num_layers * (4 * a * d + 2 * d * f + 2 * d);
    let decoder = decoder_layers(config) * (8 * a * d + 2 * d * f + 3 * d);
    let shared = 2 * (config.relative_attention_num_buckets * config.num_heads + d);
    config.vocab_size * d + encoder + decoder + shared
}

/// Bytes of one decoded token in the cache: `2 (decoder layers) batch heads d_kv 4`.
pub fn kv_bytes_per_token(config: &Config, batch: usize) -> usize {
    let kv = config.num_heads * config.d_kv;
    2 * decoder_layers(config) * batch * kv * DType::F32.size_in_bytes()
}

fn decoder_layers(config: &Config) -> usize {
    config.num_decoder_layers.unwrap_or(config.num_layers)
}
