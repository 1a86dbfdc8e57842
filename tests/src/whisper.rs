//! Whisper of candle-transformers with zero weights: encodes a spectrogram and decodes text.
//!
//! Its cache holds the projections of the audio for cross-attention. The text is decoded again from
//! its start at every step. The next request replaces the cache, so without
//! [`Whisper::reset_kv_cache`] the memory does not grow, but [`cross_kv_bytes`] are retained.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::whisper::{Config, model::Whisper as Model};

/// A whisper model in f32.
pub struct Whisper {
    model: Model,
    device: Device,
}

/// The input tensors of one request. A test should create them in set-up.
pub struct Inputs {
    /// `(batch, mel_bins, 2 * audio positions)` of f32.
    mel: Tensor,
    /// `(batch, text positions)` of u32. A step uses a prefix of it.
    text: Tensor,
}

impl Whisper {
    /// Two layers of width 64 on each side, 16 mel bins, 64 audio positions.
    ///
    /// # Errors
    ///
    /// When the device cannot hold the weights.
    pub fn tiny(device: &Device) -> Result<Self> {
        Self::new(tiny_config(), device)
    }

    /// A model of any configuration.
    ///
    /// # Errors
    ///
    /// When the device cannot hold the weights.
    pub fn new(config: Config, device: &Device) -> Result<Self> {
        let model = Model::load(&VarBuilder::zeros(DType::F32, device), config)?;
        Ok(Self { model, device: device.clone() })
    }

    /// Silence of the model's maximum length, and text of its maximum length, all token 0.
    ///
    /// # Errors
    ///
    /// When the device cannot hold them.
    pub fn inputs(&self, batch: usize) -> Result<Inputs> {
        let config = self.config();
        let mel = (batch, config.num_mel_bins, 2 * config.max_source_positions);
        let text = (batch, config.max_target_positions);
        Ok(Inputs {
            mel: Tensor::zeros(mel, DType::F32, &self.device)?,
            text: Tensor::zeros(text, DType::U32, &self.device)?,
        })
    }

    /// One request: encodes, decodes `new_tokens` tokens and resets the cache. Returns the last
    /// logits, `(batch, 1, vocab)`. No memory is retained.
    ///
    /// # Errors
    ///
    /// When `new_tokens` is 0 or exceeds the text positions, or the device is full.
    pub fn transcribe(&mut self, inputs: &Inputs, new_tokens: usize) -> Result<Tensor> {
        let logits = self.transcribe_without_reset(inputs, new_tokens);
        self.reset_kv_cache();
        logits
    }

    /// The same request without the reset. [`cross_kv_bytes`] are retained until the next one.
    ///
    /// # Errors
    ///
    /// See [`Self::transcribe`].
    pub fn transcribe_without_reset(
        &mut self,
        inputs: &Inputs,
        new_tokens: usize,
    ) -> Result<Tensor> {
        let audio = self.model.encoder.forward(&inputs.mel, true)?;
        let mut logits = None;
        for step in 0..new_tokens {
            let prefix = inputs.text.narrow(1, 0, step + 1)?;
            let hidden = self.model.decoder.forward(&prefix, &audio, step == 0)?;
            logits = Some(self.model.decoder.final_linear(&hidden.narrow(1, step, 1)?)?);
        }
        logits.ok_or_else(|| candle_core::Error::msg("the number of tokens is 0"))
    }

    /// Frees the cache.
    pub fn reset_kv_cache(&mut self) {
        self.model.reset_kv_cache();
    }

    /// Bytes of weights and of tables: 4 for each of the [`parameters`] and [`table_elements`].
    pub fn weight_bytes(&self) -> usize {
        let config = self.config();
        (parameters(config) + table_elements(config)) * DType::F32.size_in_bytes()
    }

    /// The configuration of the model.
    pub fn config(&self) -> &Config {
        &self.model.config
    }
}

/// The configuration of [`Whisper::tiny`].
pub fn tiny_config() -> Config {
    Config {
        num_mel_bins: 16,
        max_source_positions: 64,
        d_model: 64,
        encoder_attention_heads: 4,
        encoder_layers: 2,
        vocab_size: 512,
        max_target_positions: 32,
        decoder_attention_heads: 4,
        decoder_layers: 2,
        suppress_tokens: Vec::new(),
    }
}

/// The number of parameters of a configuration, with d its width: `3 d mel_bins + 3 d² + 2 d` of
/// convolutions, `12 d² + 12 d` for each layer of the encoder and `16 d² + 17 d` for each of the
/// decoder, `(vocab + text positions) d` of embeddings, and two final norms of `2 d`.
///
/// An attention has `4 d² + 3 d` (its keys have no bias), a norm `2 d`, a feed-forward
/// `8 d² + 5 d`.
pub fn parameters(config: &Config) -> usize {
    let d = config.d_model;
    let (attention, norm, feed_forward) = (4 * d * d + 3 * d, 2 * d, 8 * d * d + 5 * d);
    let convolutions = 3 * d * config.num_mel_bins + 3 * d * d + 2 * d;
    let encoder = config.encoder_layers * (attention + 2 * norm + feed_forward);
    let decoder = config.decoder_layers * (2 * attention + 3 * norm + feed_forward);
    let embeddings = (config.vocab_size + config.max_target_positions) * d;
    convolutions + encoder + decoder + embeddings + 2 * norm
}

/// The number of elements that a model computes itself: the sines of the audio positions, and the
/// causal mask of the text.
pub fn table_elements(config: &Config) -> usize {
    config.max_source_positions * config.d_model + config.max_target_positions.pow(2)
}

/// Bytes that a request leaves in the cache: `2 (decoder layers) batch (audio positions) d 4`.
pub fn cross_kv_bytes(config: &Config, batch: usize) -> usize {
    let audio = batch * config.max_source_positions * config.d_model;
    2 * config.decoder_layers * audio * DType::F32.size_in_bytes()
}
