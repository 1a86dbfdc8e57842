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
        load(c, m::mistral::Model::new, m::mistral::Model::forward)
    })
    .flash()
    .with_defaults(defaults::MISTRAL),
    ModelFamily::decoder(&["mixtral"], |c| {
        load(c, m::mixtral::Model::new, m::mixtral::Model::forward)
    })
    .flash()
    .adapted_by(window)
    .with_defaults(defaults::MIXTRAL)
    .with_note(ROUTED),
    ModelFamily::decoder(&["qwen2"], |c| {
        load(c, m::qwen2::ModelForCausalLM::new, m::qwen2::ModelForCausalLM::forward)
    })
    .adapted_by(window)
    .with_defaults(defaults::QWEN),
    ModelFamily::decoder(&["qwen2_moe"], |c| {
        load(c, m::qwen2_moe::Model::new, m::qwen2_moe::Model::forward)
    })
    .adapted_by(window)
    .with_defaults(defaults::QWEN)
    .with_note(ROUTED),
    ModelFamily::decoder(&["qwen3"], |c| {
        load(c, m::qwen3::ModelForCausalLM::new, m::qwen3::ModelForCausalLM::forward)
    })
    .with_defaults(defaults::QWEN),
    ModelFamily::decoder(&["qwen3_moe"], |c| {
        load(c, m::qwen3_moe::ModelForCausalLM::new, m::qwen3_moe::ModelForCausalLM::forward)
    })
    .with_defaults(defaults::QWEN)
    .with_note(ROUTED),
    ModelFamily::decoder(&["smollm3"], |c| {
        use m::smol::smollm3::ModelForCausalLM;
        load(c, ModelForCausalLM::new, ModelForCausalLM::forward)
    })
    .with_defaults(defaults::SMOLLM3),
    ModelFamily::decoder(&["gemma"], |c| {
        let flash = c.flash_attn;
        load(c, |config, vb| m::gemma::Model::new(flash, config, vb), m::gemma::Model::forward)
    })
    .flash()
    .adapted_by(one_activation)
    .with_defaults(defaults::GEMMA),
    ModelFamily::decoder(&["gemma2"], |c| {
        let flash = c.flash_attn;
        load(c, |config, vb| m::gemma2::Model::new(flash, config, vb), m::gemma2::Model::forward)
    })
    .flash()
    .with_defaults(defaults::GEMMA2),
    ModelFamily::decoder(&["gemma3", "gemma3_text"], |c| {
        let flash = c.flash_attn;
        load(c, |config, vb| m::gemma3::Model::new(flash, config, vb), m::gemma3::Model::forward)
    })
    .flash()
    .adapted_by(|config| rename(config, "_sliding_window_pattern", "sliding_window_pattern"))
    .with_defaults(defaults::GEMMA3),
    ModelFamily::decoder(&["gemma4", "gemma4_text"], |c| {
        load(c, m::gemma4::text::TextModel::new, m::gemma4::text::TextModel::forward)
    })
    .flash()
    .with_defaults(defaults::GEMMA),
    ModelFamily::decoder(&["phi"], |c| {
        load(c, m::phi::Model::new, |model, ids, _| m::phi::Model::forward(model, ids))
    })
    .with_defaults(defaults::PHI),
    ModelFamily::decoder(&["phi3"], |c| load(c, m::phi3::Model::new, m::phi3::Model::forward))
        .with_defaults(defaults::PHI3)
        .scaled_by(&["longrope"]),
    ModelFamily::decoder(&["mixformer-sequential"], |c| {
        use m::mixformer::MixFormerSequentialForCausalLM as Mixformer;
        load(c, Mixformer::new, |model, ids, _| Mixformer::forward(model, ids))
    }),
    ModelFamily::decoder(&["phi-msft"], |c| {
        use m::mixformer::MixFormerSequentialForCausalLM as Mixformer;
        load(c, Mixformer::new_v2, |model, ids, _| Mixformer::forward(model, ids))
    }),
    ModelFamily::decoder(&["starcoder2"], |c| {
        load(c, m::starcoder2::Model::new, m::starcoder2::Model::forward)
    })
    .with_defaults(defaults::STARCODER2),
    ModelFamily::decoder(&["gpt_bigcode"], bigcode).masked_by(0),
    ModelFamily::decoder(&["stablelm", "stablelm_epoch"], |c| {
        load(c, m::stable_lm::Model::new, m::stable_lm::Model::forward)
    })
    .flash()
    .adapted_by(stable_lm)
    .with_defaults(defaults::STABLELM),
    ModelFamily::decoder(&["olmo"], |c| load(c, m::olmo::Model::new, m::olmo::Model::forward))
        .with_defaults(defaults::OLMO),
    ModelFamily::decoder(&["olmo2"], |c| load(c, m::olmo2::Model::new, m::olmo2::Model::forward))
        .with_defaults(defaults::OLMO),
    ModelFamily::decoder(&["falcon"], |c| {
        use m::falcon::Falcon;
        load(
            c,
            |config: &m::falcon::Config, vb| Falcon::load(vb, config.clone()),
            |model, ids, _| model.forward(ids),
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
        use m::glm4_new::ModelForCausalLM;
        load(c, ModelForCausalLM::new, ModelForCausalLM::forward)
    })
    .with_defaults(defaults::GLM4),
    ModelFamily::decoder(&["chatglm"], |c| {
        load(c, m::glm4::Model::new, |model, ids, _| m::glm4::Model::forward(model, ids))
    })
    .masked_by(1),
    ModelFamily::decoder(&["deepseek_v2"], |c| {
        load(c, m::deepseek2::DeepSeekV2::new, m::deepseek2::DeepSeekV2::forward)
    })
    .reading_routing()
    .with_defaults(defaults::DEEPSEEK2)
    .scaled_by(&["yarn", "linear", "dynamic", "longrope"])
    .with_note(ROUTED),
    ModelFamily::decoder(&["helium"], |c| {
        load(c, m::helium::Model::new, m::helium::Model::forward)
    })
    .flash()
    .with_defaults(defaults::HELIUM),
    ModelFamily::decoder(&["lfm2"], lfm2)
        .flash()
        .masked_by(1)
        .adapted_by(lfm2_names)
        .with_defaults(defaults::LFM2),
    ModelFamily::decoder(&["based"], |c| load(c, m::based::Model::new, m::based::Model::forward))
        .adapted_by(based)
        .one_sequence(),
];

/// A model whose forward pass takes ids and a position.
struct Decoder<M, F> {
    model: M,
    forward: F,
}

impl<M, F: FnMut(&mut M, &Tensor, usize) -> Result<Tensor>> Model for Decoder<M, F> {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        (self.forward)(&mut self.model, ids, 0)
    }

    fn step(&mut self, token: &Tensor, position: usize) -> Result<Tensor> {
        (self.forward)(&mut self.model, token, position)
    }
}

fn load<C, M, F>(
    context: &Context,
    new: impl FnOnce(&C, VarBuilder<'static>) -> Result<M>,
    forward: F,
) -> Loaded
where
    C: DeserializeOwned,
    M: 'static,
    F: FnMut(&mut M, &Tensor, usize) -> Result<Tensor> + 'static,
{
    let config: C = context.read()?;
    run(new(&config, context.weights.clone())?, forward)
}

/// Wraps a model together with the state that each of its passes needs.
fn run<M: 'static>(
    model: M,
    forward: impl FnMut(&mut M, &Tensor, usize) -> Result<Tensor> + 'static,
) -> Loaded {
    Ok(decoder(model, forward))
}

/// Wraps a model whose forward pass takes ids and a position.
pub(crate) fn decoder<M: 'static>(
    model: M,
    forward: impl FnMut(&mut M, &Tensor, usize) -> Result<Tensor> + 'static,
) -> Box<dyn Model> {
    Box::new(Decoder { model, forward })
}

fn llama(context: &Context) -> Loaded {
    use m::llama::{Cache, Llama, LlamaConfig};
    let config = context.read::<LlamaConfig>()?.into_config(context.flash_attn);
    let model = Llama::load(context.weights.clone(), &config)?;
    let cache = Cache::new(true, context.dtype, &config, &context.device)?;
    run((model, cache), |(model, cache), ids, position| model.forward(ids, position, cache))
}

fn granite(context: &Context) -> Loaded {
    use m::granite::{Cache, Granite, GraniteConfig};
    let config = context.read::<GraniteConfig>()?.into_config(context.flash_attn);
    let model = Granite::load(context.weights.clone(), &config)?;
    let cache = Cache::new(true, context.dtype, &config, &context.device)?;
    run((model, cache), |(model, cache), ids, position| model.forward(ids, position, cache))
}

fn granite_hybrid(context: &Context) -> Loaded {
    use m::granitemoehybrid::{GraniteMoeHybrid, GraniteMoeHybridCache, GraniteMoeHybridConfig};
    let config = context.read::<GraniteMoeHybridConfig>()?.into_config(context.flash_attn);
    let model = GraniteMoeHybrid::load(context.weights.clone(), &config)?;
    let cache = GraniteMoeHybridCache::new(true, context.dtype, &config, &context.device)?;
    run((model, cache), |(model, cache), ids, position| model.forward(ids, position, cache))
}

fn lfm2(context: &Context) -> Loaded {
    use m::lfm2::{Cache, Lfm2Config, Model as Lfm2};
    let config = context.read::<Lfm2Config>()?.into_config(context.flash_attn);
    let model = Lfm2::new(&config, context.weights.clone())?;
    let cache = Cache::new(true, context.dtype, &config, &context.device)?;
    run((model, cache), |(model, cache), ids, position| model.forward(ids, position, cache))
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
    run(GPTBigCode::load(context.weights.clone(), config)?, GPTBigCode::forward)
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
