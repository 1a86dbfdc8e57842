//! Llama over several devices, by a device map. Its shapes and the order of its operations are
//! those of candle-transformers' model, and so are its bytes. candle's model cannot be used,
//! because its layers are private and stay on one device.
//!
//! A device receives copies of the tensors that it needs, such as the hidden state if the next
//! layer is on another device. Every device has its own rotary tables and masks. The spans have the
//! names of Hugging Face's modules, so that `cargo memcheck plan` can write a device map from them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use candle_core::{DType, Device, IndexOp, Result, Tensor, bail};
use candle_nn::{Embedding, Linear, Module, RmsNorm, VarBuilder};
use candle_transformers::models::llama::Config;
use candle_transformers::utils::{build_causal_mask, repeat_kv};
use memcheck_runtime::DeviceMap;
use tracing::{Span, info_span};

use crate::token_ids;

/// The devices, and the device of each module.
#[derive(Debug, Clone)]
pub struct Placement {
    devices: Vec<Device>,
    map: DeviceMap,
}

impl Placement {
    /// Everything on one device.
    pub fn one(device: &Device) -> Self {
        Self { devices: vec![device.clone()], map: DeviceMap(vec![(String::new(), 0)]) }
    }

    /// Reads a device map in JSON: `{"model.embed_tokens": 0, "model.layers.0": 0, …}`.
    ///
    /// # Errors
    ///
    /// When the text is not a map, or names a device that does not exist.
    pub fn read(json: &str, devices: &[Device]) -> Result<Self> {
        let map: DeviceMap = serde_json::from_str(json).map_err(candle_core::Error::wrap)?;
        if let Some((module, device)) = map.0.iter().find(|(_, place)| *place >= devices.len()) {
            bail!(
                "`{module}` is on device {device}, but the number of devices is {}",
                devices.len()
            )
        }
        Ok(Self { devices: devices.to_vec(), map })
    }

    /// Distributes `layers` layers evenly over all devices, with the embeddings on the first and
    /// the head on the last.
    pub fn even(layers: usize, devices: &[Device]) -> Self {
        let count = devices.len();
        let mut map = vec![(EMBED.to_owned(), 0)];
        map.extend((0..layers).map(|layer| (layer_name(layer), layer * count / layers)));
        map.extend([NORM, HEAD].map(|module| (module.to_owned(), count - 1)));
        Self { devices: devices.to_vec(), map: DeviceMap(map) }
    }

    fn place(&self, module: &str) -> Result<usize> {
        match self.map.device(module) {
            Some(place) => Ok(place),
            None => bail!("the device map has no entry for `{module}`"),
        }
    }
}

const EMBED: &str = "model.embed_tokens";
const NORM: &str = "model.norm";
const HEAD: &str = "lm_head";

fn layer_name(layer: usize) -> String {
    format!("model.layers.{layer}")
}

/// A module and the index of its device.
struct Placed<M> {
    module: M,
    place: usize,
    span: Span,
}

/// A Llama decoder over several devices.
pub struct ShardedLlama {
    placement: Placement,
    embed: Placed<Embedding>,
    layers: Vec<Placed<Layer>>,
    norm: Placed<RmsNorm>,
    head: Placed<Linear>,
    config: Config,
    dtype: DType,
}

impl ShardedLlama {
    /// A model with zero weights, each on its device.
    ///
    /// # Errors
    ///
    /// When the map lacks a module, a device cannot hold its modules, or the configuration ties
    /// weights or scales positions.
    pub fn new(config: Config, dtype: DType, placement: Placement) -> Result<Self> {
        if config.tie_word_embeddings || config.rope_scaling.is_some() {
            bail!("tied embeddings and scaled positions cannot be split over devices")
        }
        let (vocab, hidden) = (config.vocab_size, config.hidden_size);
        let weights = |module: &str| -> Result<(usize, VarBuilder<'static>)> {
            let place = placement.place(module)?;
            Ok((place, VarBuilder::zeros(dtype, &placement.devices[place]).pp(module)))
        };
        let span = info_span!("model.embed_tokens");
        let (place, builder) = weights(EMBED)?;
        let module = span.in_scope(|| candle_nn::embedding(vocab, hidden, builder))?;
        let embed = Placed { module, place, span };
        let span = info_span!("lm_head");
        let (place, builder) = weights(HEAD)?;
        let module = span.in_scope(|| candle_nn::linear_no_bias(hidden, vocab, builder))?;
        let head = Placed { module, place, span };
        let span = info_span!("model.norm");
        let (place, builder) = weights(NORM)?;
        let module = span.in_scope(|| candle_nn::rms_norm(hidden, config.rms_norm_eps, builder))?;
        let norm = Placed { module, place, span };
        let layer = |index: usize| {
            let span = info_span!("model.layers", index);
            let (place, builder) = weights(&layer_name(index))?;
            let module = span.in_scope(|| Layer::load(builder, &config))?;
            Ok(Placed { module, place, span })
        };
        let layers = (0..config.num_hidden_layers).map(layer).collect::<Result<_>>()?;
        Ok(Self { placement, embed, layers, norm, head, config, dtype })
    }

    /// Ids of a prompt, `(batch, prompt_len)` of u32, on the device of the embeddings.
    ///
    /// # Errors
    ///
    /// When the device cannot hold it.
    pub fn prompt(&self, batch: usize, prompt_len: usize) -> Result<Tensor> {
        let device = &self.placement.devices[self.embed.place];
        token_ids(batch, prompt_len, self.config.vocab_size, device)
    }

    /// One request, as [`crate::llama::Llama::prefill_and_decode`].
    ///
    /// # Errors
    ///
    /// When the positions are used up, or a device is full.
    pub fn prefill_and_decode(&self, prompt: &Tensor, new_tokens: usize) -> Result<Tensor> {
        let mut cache = Cache::new(self)?;
        let (batch, prompt_len) = prompt.dims2()?;
        let mut logits = self.forward(prompt, 0, &mut cache)?;
        let token = Tensor::zeros((batch, 1), DType::U32, prompt.device())?;
        for position in prompt_len..prompt_len + new_tokens {
            logits = self.forward(&token, position, &mut cache)?;
        }
        Ok(logits)
    }

    fn forward(&self, ids: &Tensor, position: usize, cache: &mut Cache) -> Result<Tensor> {
        let (_, seq) = ids.dims2()?;
        let mut x = self.embed.span.in_scope(|| self.embed.module.forward(ids))?;
        for (index, layer) in self.layers.iter().enumerate() {
            x = x.to_device(&self.placement.devices[layer.place])?;
            let _entered = layer.span.enter();
            x = layer.module.forward(&x, position, (index, layer.place), cache)?;
        }
        x = x.to_device(&self.placement.devices[self.norm.place])?;
        x = self.norm.span.in_scope(|| self.norm.module.forward(&x))?;
        x = x.to_device(&self.placement.devices[self.head.place])?;
        let _entered = self.head.span.enter();
        x = x.i((.., seq - 1, ..))?.contiguous()?;
        self.head.module.forward(&x)?.to_dtype(DType::F32)
    }

    fn places(&self) -> BTreeSet<usize> {
        self.layers.iter().map(|layer| layer.place).collect()
    }
}

/// Rotary tables and masks of each device with layers, keys and values of each layer.
struct Cache {
    tables: BTreeMap<usize, (Tensor, Tensor)>,
    /// By device, length and position.
    masks: HashMap<(usize, usize, usize), Tensor>,
    kvs: Vec<Option<(Tensor, Tensor)>>,
}

impl Cache {
    fn new(llama: &ShardedLlama) -> Result<Self> {
        let ShardedLlama { placement, config, dtype, .. } = llama;
        let tables = |place: usize| Ok((place, tables(config, *dtype, &placement.devices[place])?));
        let tables = info_span!("model.rotary_emb", replicated = true)
            .in_scope(|| llama.places().into_iter().map(tables).collect::<Result<_>>())?;
        let kvs = vec![None; config.num_hidden_layers];
        Ok(Self { tables, masks: HashMap::new(), kvs })
    }

    fn mask(&mut self, place: usize, seq: usize, position: usize, on: &Device) -> Result<Tensor> {
        let key = (place, seq, position + seq);
        if let Some(mask) = self.masks.get(&key) {
            return Ok(mask.clone());
        }
        let mask = info_span!("mask", replicated = true)
            .in_scope(|| build_causal_mask(seq, position, on))?;
        self.masks.insert(key, mask.clone());
        Ok(mask)
    }
}

/// Cosines and sines of every position.
fn tables(config: &Config, dtype: DType, device: &Device) -> Result<(Tensor, Tensor)> {
    let (head_dim, positions) =
        (config.hidden_size / config.num_attention_heads, config.max_position_embeddings);
    let frequency = |i: usize| 1f32 / config.rope_theta.powf(i as f32 / head_dim as f32);
    let theta: Vec<f32> = (0..head_dim).step_by(2).map(frequency).collect();
    let theta = Tensor::new(theta, device)?;
    let angles = Tensor::arange(0, positions as u32, device)?
        .to_dtype(DType::F32)?
        .reshape((positions, 1))?
        .matmul(&theta.reshape((1, theta.elem_count()))?)?;
    Ok((angles.cos()?.to_dtype(dtype)?, angles.sin()?.to_dtype(dtype)?))
}

struct Layer {
    norms: [RmsNorm; 2],
    /// Queries, keys, values and output.
    attention: [Linear; 4],
    /// Gate, up and down.
    mlp: [Linear; 3],
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
}

impl Layer {
    fn load(weights: VarBuilder<'_>, config: &Config) -> Result<Self> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let (heads, kv_heads) = (config.num_attention_heads, config.num_key_value_heads);
        let head_dim = hidden / heads;
        let linear = |from, to, name: &str| candle_nn::linear_no_bias(from, to, weights.pp(name));
        let norm = |name: &str| candle_nn::rms_norm(hidden, config.rms_norm_eps, weights.pp(name));
        Ok(Self {
            attention: [
                linear(hidden, heads * head_dim, "self_attn.q_proj")?,
                linear(hidden, kv_heads * head_dim, "self_attn.k_proj")?,
                linear(hidden, kv_heads * head_dim, "self_attn.v_proj")?,
                linear(heads * head_dim, hidden, "self_attn.o_proj")?,
            ],
            mlp: [
                linear(hidden, inner, "mlp.gate_proj")?,
                linear(hidden, inner, "mlp.up_proj")?,
                linear(inner, hidden, "mlp.down_proj")?,
            ],
            norms: [norm("input_layernorm")?, norm("post_attention_layernorm")?],
            heads,
            kv_heads,
            head_dim,
        })
    }

    fn forward(
        &self,
        x: &Tensor,
        position: usize,
        place: (usize, usize),
        cache: &mut Cache,
    ) -> Result<Tensor> {
        let residual = x;
        let x = self.norms[0].forward(x)?;
        let x = (self.attend(&x, position, place, cache)? + residual)?;
        let residual = &x;
        self.mlp(&self.norms[1].forward(&x)?)? + residual
    }

    fn mlp(&self, x: &Tensor) -> Result<Tensor> {
        let [gate, up, down] = &self.mlp;
        let x = (candle_nn::ops::silu(&gate.forward(x)?)? * up.forward(x)?)?;
        down.forward(&x)
    }

    fn attend(
        &self,
        x: &Tensor,
        position: usize,
        (index, place): (usize, usize),
        cache: &mut Cache,
    ) -> Result<Tensor> {
        let (batch, seq, hidden) = x.dims3()?;
        let [queries, keys, values, out] = &self.attention;
        let (q, k, v) = (queries.forward(x)?, keys.forward(x)?, values.forward(x)?);
        // Shadowed tensors stay live until the function returns, as in candle's own model.
        let by_head =
            |x: &Tensor, heads| x.reshape((batch, seq, heads, self.head_dim))?.transpose(1, 2);
        let q = by_head(&q, self.heads)?.contiguous()?;
        let k = by_head(&k, self.kv_heads)?.contiguous()?;
        let mut v = by_head(&v, self.kv_heads)?;
        let Some((cos, sin)) = cache.tables.get(&place) else {
            bail!("device {place} has no position tables")
        };
        let rotate = |x: &Tensor| {
            let (cos, sin) = (cos.narrow(0, position, seq)?, sin.narrow(0, position, seq)?);
            candle_nn::rotary_emb::rope(x, &cos, &sin)
        };
        let q = rotate(&q)?;
        let mut k = rotate(&k)?;
        if let Some((cached_k, cached_v)) = &cache.kvs[index] {
            k = Tensor::cat(&[cached_k, &k], 2)?.contiguous()?;
            v = Tensor::cat(&[cached_v, &v], 2)?.contiguous()?;
        }
        cache.kvs[index] = Some((k.clone(), v.clone()));
        let k = repeat_kv(k, self.heads / self.kv_heads)?;
        let v = repeat_kv(v, self.heads / self.kv_heads)?;
        let y = {
            let dtype = q.dtype();
            let q = q.to_dtype(DType::F32)?;
            let k = k.to_dtype(DType::F32)?;
            let v = v.to_dtype(DType::F32)?;
            let scores = (q.matmul(&k.t()?)? / (self.head_dim as f64).sqrt())?;
            let scores = if seq == 1 {
                scores
            } else {
                let mask = cache.mask(place, seq, position, x.device())?;
                let mask = mask.broadcast_as(scores.shape())?;
                let hidden = Tensor::new(f32::NEG_INFINITY, scores.device())?;
                mask.where_cond(&hidden.broadcast_as(mask.shape().dims())?, &scores)?
            };
            let scores = candle_nn::ops::softmax_last_dim(&scores)?;
            scores.matmul(&v.contiguous()?)?.to_dtype(dtype)?
        };
        let y = y.transpose(1, 2)?.reshape(&[batch, seq, hidden])?;
        out.forward(&y)
    }
}
