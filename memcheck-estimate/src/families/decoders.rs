//! Decoders: they read a prompt, and then generate token by token with a cache of keys and values.

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models as m;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::adapted::{default, rename};
use super::{Context, Loaded, Model, ModelFamily, ROUTED, defaults};

/// A window that hides no token, for types that require a number.
const NO_WINDOW: u64 = 1 << 27;

pub(super) const TABLE: &[ModelFamily] = &[
    ModelFamily::decoder(&["llama"], llama)
        .flash()
        .masked_by(1)
        .with_defaults(defaults::LLAMA)
        .scaled_by(&["llama3"]),
    ModelFamily::decoder(&["mistral"], |c| {
        use m::mistral::Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .flash()
    .with_defaults(defaults::MISTRAL),
    ModelFamily::decoder(&["mixtral"], |c| {
        load(c, m::mixtral::Model::new, m::mixtral::Model::forward, None)
    })
    .flash()
    .adapted_by(window)
    .with_defaults(defaults::MIXTRAL)
    .with_note(ROUTED),
    ModelFamily::decoder(&["qwen2"], |c| {
        use m::qwen2::ModelForCausalLM as Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .adapted_by(window)
    .with_defaults(defaults::QWEN),
    ModelFamily::decoder(&["qwen2_moe"], |c| {
        use m::qwen2_moe::Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .adapted_by(window)
    .with_defaults(defaults::QWEN)
    .with_note(ROUTED),
    ModelFamily::decoder(&["qwen3"], |c| {
        use m::qwen3::ModelForCausalLM as Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .with_defaults(defaults::QWEN),
    ModelFamily::decoder(&["qwen3_moe"], |c| {
        use m::qwen3_moe::ModelForCausalLM as Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .with_defaults(defaults::QWEN)
    .with_note(ROUTED),
    ModelFamily::decoder(&["smollm3"], |c| {
        use m::smol::smollm3::ModelForCausalLM as Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .with_defaults(defaults::SMOLLM3),
    ModelFamily::decoder(&["gemma"], |c| {
        use m::gemma::Model;
        let flash = c.flash_attn;
        let new = |config: &_, vb| Model::new(flash, config, vb);
        load(c, new, Model::forward, Some(Model::clear_kv_cache))
    })
    .flash()
    .adapted_by(one_activation)
    .with_defaults(defaults::GEMMA),
    ModelFamily::decoder(&["gemma2"], |c| {
        use m::gemma2::Model;
        let flash = c.flash_attn;
        let new = |config: &_, vb| Model::new(flash, config, vb);
        load(c, new, Model::forward, Some(Model::clear_kv_cache))
    })
    .flash()
    .with_defaults(defaults::GEMMA2),
    ModelFamily::decoder(&["gemma3", "gemma3_text"], |c| {
        use m::gemma3::Model;
        let flash = c.flash_attn;
        let new = |config: &_, vb| Model::new(flash, config, vb);
        load(c, new, Model::forward, Some(Model::clear_kv_cache))
    })
    .flash()
    .adapted_by(|config| rename(config, "_sliding_window_pattern", "sliding_window_pattern"))
    .with_defaults(defaults::GEMMA3),
    #[cfg(not(candle_before = "0.11"))]
    ModelFamily::decoder(&["gemma4", "gemma4_text"], |c| {
        use m::gemma4::text::TextModel as Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .flash()
    .with_defaults(defaults::GEMMA),
    ModelFamily::decoder(&["phi"], |c| {
        use m::phi::Model;
        let forward = |model: &mut Model, ids: &Tensor, _| model.forward(ids);
        load(c, Model::new, forward, Some(Model::clear_kv_cache))
    })
    .with_defaults(defaults::PHI),
    ModelFamily::decoder(&["phi3"], |c| {
        use m::phi3::Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .with_defaults(defaults::PHI3)
    .scaled_by(&["longrope"]),
    ModelFamily::decoder(&["mixformer-sequential"], |c| {
        use m::mixformer::MixFormerSequentialForCausalLM as Mixformer;
        let forward = |model: &mut Mixformer, ids: &Tensor, _| model.forward(ids);
        load(c, Mixformer::new, forward, Some(Mixformer::clear_kv_cache))
    })
    .with_defaults(defaults::MIXFORMER),
    ModelFamily::decoder(&["phi-msft"], |c| {
        use m::mixformer::MixFormerSequentialForCausalLM as Mixformer;
        let forward = |model: &mut Mixformer, ids: &Tensor, _| model.forward(ids);
        load(c, Mixformer::new_v2, forward, Some(Mixformer::clear_kv_cache))
    })
    .with_defaults(defaults::MIXFORMER),
    ModelFamily::decoder(&["starcoder2"], |c| {
        use m::starcoder2::Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .with_defaults(defaults::STARCODER2),
    ModelFamily::decoder(&["gpt_bigcode"], bigcode).masked_by(0),
    ModelFamily::decoder(&["stablelm", "stablelm_epoch"], |c| {
        load(c, m::stable_lm::Model::new, m::stable_lm::Model::forward, None)
    })
    .flash()
    .adapted_by(stable_lm)
    .with_defaults(defaults::STABLELM),
    ModelFamily::decoder(&["olmo"], |c| {
        use m::olmo::Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .with_defaults(defaults::OLMO),
    ModelFamily::decoder(&["olmo2"], |c| {
        use m::olmo2::Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .with_defaults(defaults::OLMO),
    ModelFamily::decoder(&["falcon"], |c| {
        use m::falcon::Falcon;
        load(
            c,
            |config: &m::falcon::Config, vb| Falcon::load(vb, config.clone()),
            |model, ids, _| model.forward(ids),
            Some(Falcon::clear_kv_cache),
        )
    })
    .masked_by(1)
    .unbounded()
    .with_defaults(defaults::FALCON),
    ModelFamily::decoder(&["granite"], granite)
        .flash()
        .masked_by(1)
        .with_defaults(defaults::LLAMA)
        .scaled_by(&[]),
    ModelFamily::decoder(&["granitemoehybrid"], granite_hybrid)
        .flash()
        .masked_by(1)
        .with_defaults(defaults::LLAMA)
        .scaled_by(&[]),
    ModelFamily::decoder(&["glm4"], |c| {
        use m::glm4_new::ModelForCausalLM as Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .with_defaults(defaults::GLM4),
    ModelFamily::decoder(&["chatglm"], |c| {
        use m::glm4::Model;
        let forward = |model: &mut Model, ids: &Tensor, _| model.forward(ids);
        load(c, Model::new, forward, Some(Model::reset_kv_cache))
    })
    .masked_by(1),
    ModelFamily::decoder(&["deepseek_v2"], |c| {
        use m::deepseek2::DeepSeekV2 as Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .reading_routing()
    .with_defaults(defaults::DEEPSEEK2)
    .scaled_by(&["yarn", "linear", "dynamic", "longrope"])
    .with_note(ROUTED),
    ModelFamily::decoder(&["helium"], |c| {
        use m::helium::Model;
        load(c, Model::new, Model::forward, Some(Model::clear_kv_cache))
    })
    .flash()
    .with_defaults(defaults::HELIUM),
    #[cfg(not(candle_before = "0.11"))]
    ModelFamily::decoder(&["lfm2"], lfm2)
        .flash()
        .masked_by(1)
        .adapted_by(lfm2_names)
        .with_defaults(defaults::LFM2),
    ModelFamily::decoder(&["based"], |c| {
        load(c, m::based::Model::new, m::based::Model::forward, None)
    })
    .adapted_by(based)
    .one_sequence(),
];

/// Forgets the requests of a model.
type Clear<M> = Box<dyn Fn(&mut M) -> Result<()>>;

/// A model whose forward pass takes ids and a position.
struct Decoder<M, F> {
    model: M,
    forward: F,
    /// `None` if candle has no function for it.
    clear: Option<Clear<M>>,
}

impl<M, F: FnMut(&mut M, &Tensor, usize) -> Result<Tensor>> Model for Decoder<M, F> {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        (self.forward)(&mut self.model, ids, 0)
    }

    fn step(&mut self, token: &Tensor, position: usize) -> Result<Tensor> {
        (self.forward)(&mut self.model, token, position)
    }

    fn clear(&mut self) -> Result<bool> {
        match &self.clear {
            Some(clear) => clear(&mut self.model).map(|()| true),
            None => Ok(false),
        }
    }
}

fn load<C, M, F>(
    context: &Context,
    new: impl FnOnce(&C, VarBuilder<'static>) -> Result<M>,
    forward: F,
    clear: Option<fn(&mut M)>,
) -> Loaded
where
    C: DeserializeOwned,
    M: 'static,
    F: FnMut(&mut M, &Tensor, usize) -> Result<Tensor> + 'static,
{
    let config: C = context.read()?;
    let model = new(&config, context.weights.clone())?;
    Ok(Box::new(Decoder { model, forward, clear: clear.map(infallible) }))
}

fn infallible<M: 'static>(clear: fn(&mut M)) -> Clear<M> {
    Box::new(move |model| {
        clear(model);
        Ok(())
    })
}

/// Wraps a model whose cache is a separate value. A new cache forgets the requests.
fn with_cache<M: 'static, C: 'static>(
    model: M,
    new_cache: impl Fn() -> Result<C> + 'static,
    forward: fn(&M, &Tensor, usize, &mut C) -> Result<Tensor>,
) -> Loaded {
    let model = (model, new_cache()?);
    let forward =
        move |(model, cache): &mut (M, C), ids: &Tensor, at| forward(model, ids, at, cache);
    let clear: Option<Clear<(M, C)>> = Some(Box::new(move |(_, cache)| {
        *cache = new_cache()?;
        Ok(())
    }));
    Ok(Box::new(Decoder { model, forward, clear }))
}

/// Wraps a model whose forward pass takes ids and a position, and which is never cleared.
pub(crate) fn decoder<M: 'static>(
    model: M,
    forward: impl FnMut(&mut M, &Tensor, usize) -> Result<Tensor> + 'static,
) -> Box<dyn Model> {
    Box::new(Decoder { model, forward, clear: None })
}

fn llama(context: &Context) -> Loaded {
    use m::llama::{Cache, Llama, LlamaConfig};
    let config = context.read::<LlamaConfig>()?.into_config(context.flash_attn);
    let model = Llama::load(context.weights.clone(), &config)?;
    let (dtype, device) = (context.dtype, context.device.clone());
    with_cache(model, move || Cache::new(true, dtype, &config, &device), Llama::forward)
}

fn granite(context: &Context) -> Loaded {
    use m::granite::{Cache, Granite, GraniteConfig};
    let config = context.read::<GraniteConfig>()?.into_config(context.flash_attn);
    let model = Granite::load(context.weights.clone(), &config)?;
    let (dtype, device) = (context.dtype, context.device.clone());
    with_cache(model, move || Cache::new(true, dtype, &config, &device), Granite::forward)
}

fn granite_hybrid(context: &Context) -> Loaded {
    use m::granitemoehybrid::{GraniteMoeHybrid, GraniteMoeHybridCache, GraniteMoeHybridConfig};
    let config = context.read::<GraniteMoeHybridConfig>()?.into_config(context.flash_attn);
    let model = GraniteMoeHybrid::load(context.weights.clone(), &config)?;
    let (dtype, device) = (context.dtype, context.device.clone());
    let new_cache = move || GraniteMoeHybridCache::new(true, dtype, &config, &device);
    with_cache(model, new_cache, GraniteMoeHybrid::forward)
}

#[cfg(not(candle_before = "0.11"))]
fn lfm2(context: &Context) -> Loaded {
    use m::lfm2::{Cache, Lfm2Config, Model as Lfm2};
    let config = context.read::<Lfm2Config>()?.into_config(context.flash_attn);
    let model = Lfm2::new(&config, context.weights.clone())?;
    let cache = Cache::new(true, context.dtype, &config, &context.device)?;
    let forward = |(model, cache): &mut (Lfm2, Cache), ids: &Tensor, position| {
        model.forward(ids, position, cache)
    };
    let clear = infallible(|(_, cache): &mut (Lfm2, Cache)| cache.clear());
    Ok(Box::new(Decoder { model: (model, cache), forward, clear: Some(clear) }))
}

/// A type for BigCode's configuration, because candle's own type cannot be read from a file.
#[derive(Deserialize)]
struct BigCode {
    vocab_size: usize,
    n_positions: usize,
    n_layer: usize,
    n_embd: usize,
    layer_norm_epsilon: f64,
    n_inner: Option<usize>,
    n_head: usize,
    multi_query: bool,
}

fn bigcode(context: &Context) -> Loaded {
    use m::bigcode::{Config, GPTBigCode};
    let raw: BigCode = context.read()?;
    let config = Config {
        vocab_size: raw.vocab_size,
        max_position_embeddings: raw.n_positions,
        num_hidden_layers: raw.n_layer,
        hidden_size: raw.n_embd,
        layer_norm_epsilon: raw.layer_norm_epsilon,
        n_inner: raw.n_inner,
        num_attention_heads: raw.n_head,
        multi_query: raw.multi_query,
        use_cache: true,
    };
    Ok(decoder(GPTBigCode::load(context.weights.clone(), config)?, GPTBigCode::forward))
}

fn window(config: &mut Map<String, Value>) {
    default(config, "sliding_window", json!(NO_WINDOW));
}

/// Keeps one activation. The files of code models contain both `hidden_act` and
/// `hidden_activation`, which candle refuses. Hugging Face ignores `hidden_act` if a file contains
/// it alone.
fn one_activation(config: &mut Map<String, Value>) {
    config.remove("hidden_act");
    default(config, "hidden_activation", json!("gelu_pytorch_tanh"));
}

/// Renames the keys of StableLM's first files.
fn stable_lm(config: &mut Map<String, Value>) {
    rename(config, "rope_pct", "partial_rotary_factor");
    rename(config, "norm_eps", "layer_norm_eps");
}

/// Renames the keys of Hugging Face's transformers, and those of LFM2's first files.
#[cfg(not(candle_before = "0.11"))]
fn lfm2_names(config: &mut Map<String, Value>) {
    rename(config, "tie_word_embeddings", "tie_embedding");
    rename(config, "theta", "rope_theta");
    rename(config, "block_norm_eps", "norm_eps");
    let Some(layers) = config.get("num_hidden_layers").and_then(Value::as_u64) else { return };
    let Some(full) = config.get("full_attn_idxs").and_then(Value::as_array) else { return };
    let layers = layers.min(crate::sizes::MOST_LAYERS);
    let kind = |layer| if full.contains(&json!(layer)) { "full_attention" } else { "conv" };
    let kinds: Vec<&str> = (0..layers).map(kind).collect();
    default(config, "layer_types", json!(kinds));
}

/// Sets the number of positions to 2,048, because candle's rotary tables always have that size.
fn based(config: &mut Map<String, Value>) {
    config.insert("max_position_embeddings".to_owned(), json!(2048));
}
