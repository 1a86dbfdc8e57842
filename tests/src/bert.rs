//! BERT of candle-transformers with zero weights: one forward pass.
//!
//! A pass keeps no memory, so growth is 0, and the figure of interest is the peak.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};

use crate::token_ids;

/// A BERT encoder of any dtype, without the pooler.
pub struct Bert {
    model: BertModel,
    config: Config,
    dtype: DType,
    device: Device,
}

/// The input tensors of a forward pass. A test should create them in set-up.
pub struct Inputs {
    ids: Tensor,
    type_ids: Tensor,
    attention_mask: Tensor,
}

impl Bert {
    /// Two layers of width 64 and four heads in f32, for tests that take milliseconds.
    ///
    /// # Errors
    ///
    /// When the device cannot hold the weights.
    pub fn tiny(device: &Device) -> Result<Self> {
        Self::new(tiny_config(), DType::F32, device)
    }

    /// BERT-base: 12 layers of width 768. Its weights are [`parameters`] times the size of `dtype`:
    /// 435,566,592 bytes in f32, and half of that in f16 and bf16.
    ///
    /// # Errors
    ///
    /// When the device cannot hold the weights.
    pub fn base(device: &Device, dtype: DType) -> Result<Self> {
        Self::new(Config::default(), dtype, device)
    }

    /// A model of any configuration.
    ///
    /// # Errors
    ///
    /// When the device cannot hold the weights.
    pub fn new(config: Config, dtype: DType, device: &Device) -> Result<Self> {
        let model = BertModel::load(VarBuilder::zeros(dtype, device), &config)?;
        Ok(Self { model, config, dtype, device: device.clone() })
    }

    /// Ids, token types and mask, each `(batch, seq)` of u32: `3 * batch * seq * 4` bytes. The mask
    /// hides no token.
    ///
    /// # Errors
    ///
    /// When the device cannot hold them.
    pub fn inputs(&self, batch: usize, seq: usize) -> Result<Inputs> {
        let ids = token_ids(batch, seq, self.config.vocab_size, &self.device)?;
        let type_ids = ids.zeros_like()?;
        let attention_mask = ids.ones_like()?;
        Ok(Inputs { ids, type_ids, attention_mask })
    }

    /// One forward pass. Returns the hidden states of the last layer, `(batch, seq, hidden)`.
    ///
    /// # Errors
    ///
    /// When `seq` exceeds the position embeddings, or the device is full.
    pub fn forward(&self, inputs: &Inputs) -> Result<Tensor> {
        self.model.forward(&inputs.ids, &inputs.type_ids, Some(&inputs.attention_mask))
    }

    /// Bytes of weights.
    pub fn weight_bytes(&self) -> usize {
        parameters(&self.config) * self.dtype.size_in_bytes()
    }

    /// The peak of live bytes of forward passes over [`Self::inputs`], weights and inputs included.
    /// With b the batch, s the length, h the width and a the heads, it is the size of the dtype
    /// times `parameters + b (8 s h + 5 a s² + 2 a s + s)`, plus 4 times `3 b s` of inputs, plus
    /// 96.
    ///
    /// The division that ends the softmax of the second layer reaches the peak. `8 s h`: queries,
    /// keys and values, each twice, the layer's input and the embeddings; `5 a s²`: scores scaled,
    /// masked, less their maximum, raised and divided; `2 a s`: maxima and sums; `s`: the mask. The
    /// kernel of the division receives dimensions and two strides: 3 * 4 * 8 bytes.
    pub fn forward_peak_bytes(&self, batch: usize, seq: usize) -> usize {
        let (h, a) = (self.config.hidden_size, self.config.num_attention_heads);
        let activations = 8 * seq * h + 5 * a * seq * seq + 2 * a * seq + seq;
        self.weight_bytes()
            + batch * activations * self.dtype.size_in_bytes()
            + 3 * batch * seq * 4
            + 3 * 4 * 8
    }

    /// The configuration of the model.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// The configuration of [`Bert::tiny`].
pub fn tiny_config() -> Config {
    Config {
        vocab_size: 512,
        hidden_size: 64,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        intermediate_size: 256,
        max_position_embeddings: 128,
        ..Config::default()
    }
}

/// The number of parameters of a configuration, with h its width and f its intermediate width:
/// `(vocab + positions + types + 2) h + layers (4 h² + 2 h f + f + 9 h)`.
pub fn parameters(config: &Config) -> usize {
    let (h, f) = (config.hidden_size, config.intermediate_size);
    let embedded = config.vocab_size + config.max_position_embeddings + config.type_vocab_size;
    (embedded + 2) * h + config.num_hidden_layers * (4 * h * h + 2 * h * f + f + 9 * h)
}
