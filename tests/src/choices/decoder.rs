//! A small decoder in f32 with one attention head in each layer, whose cache grows with its tokens.

use candle_core::{Device, Result, Tensor};
use candle_nn::ops::softmax_last_dim;

use super::numbers;

/// Size of the vocabulary.
pub const VOCAB: usize = 512;
/// Width of the hidden states.
pub const WIDTH: usize = 64;
/// Bytes of one row of hidden states, keys or values.
pub const ROW: usize = WIDTH * 4;
/// Bytes of the logits of one token.
pub const LOGITS: usize = VOCAB * 4;

#[derive(Debug, Clone)]
struct Layer {
    query: Tensor,
    key: Tensor,
    value: Tensor,
}

/// The keys and values of every layer, two tensors of shape `(tokens, WIDTH)`.
#[derive(Debug, Default)]
pub struct Cache {
    layers: Vec<[Option<Tensor>; 2]>,
    tokens: usize,
}

impl Cache {
    /// The number of tokens.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Forgets all tokens after the first `tokens`. The remaining ones are copied, because a view
    /// would keep the whole storage.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn truncate(&mut self, tokens: usize) -> Result<()> {
        if tokens < self.tokens {
            for rows in self.layers.iter_mut().flatten() {
                if let Some(all) = rows.take() {
                    *rows = Some(all.narrow(0, 0, tokens)?.force_contiguous()?);
                }
            }
            self.tokens = tokens;
        }
        Ok(())
    }
}

/// An embedding, layers of attention, and a head.
#[derive(Debug, Clone)]
pub struct Decoder {
    embedding: Tensor,
    layers: Vec<Layer>,
    head: Tensor,
}

impl Decoder {
    /// A model of [`weight_bytes`].
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(layers: usize, device: &Device) -> Result<Self> {
        let square =
            |salt: usize, spread: f32| numbers((WIDTH, WIDTH), salt as u64, spread, device);
        let layer = |number: usize| -> Result<Layer> {
            let salt = 3 * number;
            Ok(Layer {
                query: square(salt + 10, 0.4)?,
                key: square(salt + 11, 0.4)?,
                value: square(salt + 12, 0.25)?,
            })
        };
        Ok(Self {
            embedding: numbers((VOCAB, WIDTH), 0, 1.0, device)?,
            layers: (0..layers).map(layer).collect::<Result<_>>()?,
            head: numbers((WIDTH, VOCAB), 1, 1.5, device)?,
        })
    }

    /// A model of the first layers of this one. It shares all weights.
    pub fn first_layers(&self, count: usize) -> Self {
        Self { layers: self.layers[..count].to_vec(), ..self.clone() }
    }

    /// All weights.
    pub fn tensors(&self) -> Vec<&Tensor> {
        let layers = self.layers.iter().flat_map(|layer| [&layer.query, &layer.key, &layer.value]);
        [&self.embedding, &self.head].into_iter().chain(layers).collect()
    }

    /// The device of the weights.
    pub fn device(&self) -> &Device {
        self.embedding.device()
    }

    /// The hidden states of `ids`, u32 of shape `(tokens)`, before the first layer.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn embed(&self, ids: &Tensor) -> Result<Tensor> {
        self.embedding.embedding(ids)
    }

    /// Runs all layers over more tokens and adds them to `cache`. Returns their hidden states,
    /// `(tokens, WIDTH)`.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn forward(&self, ids: &[u32], cache: &mut Cache) -> Result<Tensor> {
        let ids = Tensor::new(ids, self.device())?;
        let mask = causal_mask(ids.dim(0)?, cache.tokens, self.device())?;
        let mut hidden = self.embed(&ids)?;
        for layer in 0..self.layers.len() {
            hidden = self.run_layer(layer, &hidden, mask.as_ref(), cache)?;
        }
        cache.tokens += ids.dim(0)?;
        Ok(hidden)
    }

    /// Runs one layer, whose keys and values are added to `cache`. The caller must add to the
    /// number of its tokens after the last layer.
    pub(super) fn run_layer(
        &self,
        number: usize,
        hidden: &Tensor,
        mask: Option<&Tensor>,
        cache: &mut Cache,
    ) -> Result<Tensor> {
        if cache.layers.len() <= number {
            cache.layers.resize_with(number + 1, Default::default);
        }
        let layer = &self.layers[number];
        let query = hidden.matmul(&layer.query)?;
        let [keys, values] = &mut cache.layers[number];
        let keys = append(keys, hidden.matmul(&layer.key)?)?;
        let values = append(values, hidden.matmul(&layer.value)?)?;
        let mut scores = (query.matmul(&keys.t()?)? * (1.0 / (WIDTH as f64).sqrt()))?;
        if let Some(mask) = mask {
            scores = (scores + mask)?;
        }
        (softmax_last_dim(&scores)?.matmul(&values)? + hidden)?.tanh()
    }

    /// The logits of hidden states, `(tokens, VOCAB)`.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        hidden.matmul(&self.head)
    }

    /// The logits of the last token, `(VOCAB)`.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn last_logits(&self, hidden: &Tensor) -> Result<Tensor> {
        self.logits(&hidden.narrow(0, hidden.dim(0)? - 1, 1)?)?.get(0)
    }
}

/// Adds rows to those of `old`, which are freed before the return.
fn append(old: &mut Option<Tensor>, rows: Tensor) -> Result<Tensor> {
    let all = match old.take() {
        Some(old) => Tensor::cat(&[&old, &rows], 0)?,
        None => rows,
    };
    *old = Some(all.clone());
    Ok(all)
}

/// The mask of `count` tokens after `before` others, `(count, before + count)`; one token needs
/// none.
pub(super) fn causal_mask(count: usize, before: usize, device: &Device) -> Result<Option<Tensor>> {
    if count == 1 {
        return Ok(None);
    }
    let (rows, columns) = (count, before + count);
    let element = |at: usize| match at % columns > before + at / columns {
        true => f32::NEG_INFINITY,
        false => 0.0,
    };
    let elements: Vec<f32> = (0..rows * columns).map(element).collect();
    Tensor::from_vec(elements, (rows, columns), device).map(Some)
}

/// Bytes of the weights of a model.
pub const fn weight_bytes(layers: usize) -> usize {
    4 * (2 * VOCAB * WIDTH + 3 * layers * WIDTH * WIDTH)
}

/// Bytes of a cache.
pub const fn cache_bytes(layers: usize, tokens: usize) -> usize {
    2 * layers * tokens * ROW
}

/// Live bytes of the last layer while it adds `new` tokens to `old` ones, ids and mask included but
/// weights excluded: the values of both lengths, and the rows of hidden states, query and value.
pub const fn append_bytes(layers: usize, old: usize, new: usize) -> usize {
    let mask = if new == 1 { 0 } else { 4 * new * (old + new) };
    cache_bytes(layers, old + new) + (old + 3 * new) * ROW + 4 * new + mask
}
