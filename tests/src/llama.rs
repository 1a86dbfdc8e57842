//! Llama of candle-transformers with zero weights: prefill, then decoding with a KV cache.
//!
//! The cache is separate from the model. Clean code creates one for each request
//! ([`Llama::prefill_and_decode`]). Code that leaks keeps one for ever ([`Session`]). No token is
//! read back from the device: every step gets token 0, which allocates the same.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Config, Llama as Model};

use crate::token_ids;

/// A Llama decoder of any configuration and dtype.
pub struct Llama {
    model: Model,
    config: Config,
    dtype: DType,
    device: Device,
}

impl Llama {
    /// Two layers of width 64, four query and two key/value heads.
    ///
    /// # Errors
    ///
    /// When the device cannot hold the weights.
    pub fn tiny(device: &Device, dtype: DType) -> Result<Self> {
        Self::new(tiny_config(), dtype, device)
    }

    /// Llama-2-7B in f16: 6,738,415,616 parameters, 13,476,831,232 bytes.
    ///
    /// # Errors
    ///
    /// See [`Self::new`].
    pub fn llama2_7b(device: &Device) -> Result<Self> {
        Self::new(Config::config_7b_v2(false), DType::F16, device)
    }

    /// A model of any configuration. Its weights are [`parameters`] times the size of `dtype`.
    ///
    /// # Errors
    ///
    /// When the device cannot hold the embeddings or the head.
    ///
    /// # Panics
    ///
    /// When the device cannot hold the layers, because candle unwraps that error (`Llama::load`,
    /// candle-transformers 0.11.1).
    pub fn new(config: Config, dtype: DType, device: &Device) -> Result<Self> {
        let model = Model::load(VarBuilder::zeros(dtype, device), &config)?;
        Ok(Self { model, config, dtype, device: device.clone() })
    }

    /// Ids of a prompt, `(batch, prompt_len)` of u32. A test should create them in set-up.
    ///
    /// # Errors
    ///
    /// When the device cannot hold it.
    pub fn prompt(&self, batch: usize, prompt_len: usize) -> Result<Tensor> {
        token_ids(batch, prompt_len, self.config.vocab_size, &self.device)
    }

    /// An empty cache, which has only the rotary tables, see [`rope_table_bytes`].
    ///
    /// # Errors
    ///
    /// When the device cannot hold it.
    pub fn cache(&self) -> Result<Cache> {
        Cache::new(true, self.dtype, &self.config, &self.device)
    }

    /// One request with a new cache: the prompt `(batch, seq)`, then `new_tokens` single tokens.
    /// Returns the last logits, `(batch, vocab)` in f32. The cache does not outlive the call, so
    /// growth is 0.
    ///
    /// Before it returns, [`cache_bytes`] of `seq + new_tokens` tokens and a prompt of `seq` are
    /// live.
    ///
    /// # Errors
    ///
    /// When `seq + new_tokens` exceeds the configured positions, or the device is full.
    pub fn prefill_and_decode(&self, prompt: &Tensor, new_tokens: usize) -> Result<Tensor> {
        let mut cache = self.cache()?;
        let (batch, prompt_len) = prompt.dims2()?;
        let mut logits = self.model.forward(prompt, 0, &mut cache)?;
        let token = Tensor::zeros((batch, 1), DType::U32, &self.device)?;
        for position in prompt_len..prompt_len + new_tokens {
            logits = self.model.forward(&token, position, &mut cache)?;
        }
        Ok(logits)
    }

    /// Bytes of weights.
    pub fn weight_bytes(&self) -> usize {
        parameters(&self.config) * self.dtype.size_in_bytes()
    }

    /// The peak of live bytes in `prefill_and_decode(prompt, 0)`, prompt and weights included. With
    /// b the batch, s the length, h the width and a the heads, it is the sum of weights, ids, the
    /// cache of s tokens, and the size of the dtype times `b (7 s h + 2 s h + 3 a s²)`.
    ///
    /// The attention of the last layer reaches it, with seven hidden states, keys and values
    /// repeated for every head, and three tensors of scores.
    pub fn prefill_peak_bytes(&self, batch: usize, seq: usize) -> usize {
        let (h, a) = (self.config.hidden_size, self.config.num_attention_heads);
        let activations = batch * (7 * seq * h + 2 * seq * h + 3 * a * seq * seq);
        self.weight_bytes()
            + batch * seq * 4
            + cache_bytes(&self.config, batch, self.dtype, seq, seq)
            + activations * self.dtype.size_in_bytes()
    }

    /// The peak of decoding the last of `new_tokens` tokens after a prompt of `prompt_len`. With n
    /// tokens in all, it is the sum of weights, ids of prompt and token, the cache, the last logits
    /// in f32, and the size of the dtype times `b (6 h + 2 n h + 2 a n)`. The formula holds if n is
    /// large enough. With few tokens the prefill, or the head, has a higher peak.
    pub fn decode_peak_bytes(&self, batch: usize, prompt_len: usize, new_tokens: usize) -> usize {
        let (h, a) = (self.config.hidden_size, self.config.num_attention_heads);
        let tokens = prompt_len + new_tokens;
        let activations = batch * (6 * h + 2 * tokens * h + 2 * a * tokens);
        self.weight_bytes()
            + batch * (prompt_len + 1) * 4
            + cache_bytes(&self.config, batch, self.dtype, prompt_len, tokens)
            + batch * self.config.vocab_size * 4
            + activations * self.dtype.size_in_bytes()
    }

    /// The configuration of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// The leak: one cache for ever, which gets one more token at every step.
pub struct Session<'a> {
    llama: &'a Llama,
    cache: Cache,
    token: Tensor,
    batch: usize,
    position: usize,
}

impl<'a> Session<'a> {
    /// Prefills `prompt`, `(batch, seq)`. All of this is set-up.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(llama: &'a Llama, prompt: &Tensor) -> Result<Self> {
        let (batch, position) = prompt.dims2()?;
        let mut cache = llama.cache()?;
        llama.model.forward(prompt, 0, &mut cache)?;
        let token = Tensor::zeros((batch, 1), DType::U32, &llama.device)?;
        Ok(Self { llama, cache, token, batch, position })
    }

    /// Decodes one token and returns its logits, `(batch, vocab)` in f32. Leaks
    /// [`kv_bytes_per_token`], because every layer replaces its two cached tensors by longer ones.
    ///
    /// # Errors
    ///
    /// When the configured positions are used up, or the device is full.
    pub fn step(&mut self) -> Result<Tensor> {
        let logits = self.llama.model.forward(&self.token, self.position, &mut self.cache)?;
        self.position += 1;
        Ok(logits)
    }

    /// Bytes that each [`Self::step`] leaks.
    pub fn leak_bytes(&self) -> usize {
        kv_bytes_per_token(&self.llama.config, self.batch, self.llama.dtype)
    }
}

/// The configuration of [`Llama::tiny`].
pub fn tiny_config() -> Config {
    Config {
        hidden_size: 64,
        intermediate_size: 128,
        vocab_size: 512,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        max_position_embeddings: 512,
        ..Config::config_7b_v2(false)
    }
}

/// The number of parameters of a configuration, with h its width, f its intermediate width and kv
/// the width of keys and of values: `(1 or 2) vocab h + layers (2 h² + 2 h kv + 3 h f + 2 h) + h`.
pub fn parameters(config: &Config) -> usize {
    let (h, f) = (config.hidden_size, config.intermediate_size);
    let kv = config.num_key_value_heads * head_dim(config);
    let embeddings = if config.tie_word_embeddings { 1 } else { 2 };
    let layer = 2 * h * h + 2 * h * kv + 3 * h * f + 2 * h;
    embeddings * config.vocab_size * h + config.num_hidden_layers * layer + h
}

/// Bytes of one token in the cache: `2 layers batch kv_heads head_dim dtype`.
pub fn kv_bytes_per_token(config: &Config, batch: usize, dtype: DType) -> usize {
    let kv = config.num_key_value_heads * head_dim(config);
    2 * config.num_hidden_layers * batch * kv * dtype.size_in_bytes()
}

/// Bytes of the sines and cosines of a cache: `positions head_dim dtype`.
pub fn rope_table_bytes(config: &Config, dtype: DType) -> usize {
    config.max_position_embeddings * head_dim(config) * dtype.size_in_bytes()
}

/// Bytes of a cache of `tokens` tokens after a prompt of `prompt_len`: keys and values, the rotary
/// tables, and the prompt's mask of `prompt_len²` bytes, which candle keeps in the cache (a prompt
/// of one token has no mask).
pub fn cache_bytes(
    config: &Config,
    batch: usize,
    dtype: DType,
    prompt_len: usize,
    tokens: usize,
) -> usize {
    let mask = if prompt_len > 1 { prompt_len * prompt_len } else { 0 };
    tokens * kv_bytes_per_token(config, batch, dtype) + rope_table_bytes(config, dtype) + mask
}

fn head_dim(config: &Config) -> usize {
    config.hidden_size / config.num_attention_heads
}
