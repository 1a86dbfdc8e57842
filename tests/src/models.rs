//! A tiny model of each text family of candle-transformers that loads from a single configuration:
//! two layers of width 64, with zero weights.
//!
//! All are decoders with a cache and run in the same way: a prompt, then single tokens. The models
//! own their caches and free them.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models;
use serde_json::{Value, json};

use crate::token_ids;

/// Tokens of the prompt, and tokens after it.
const PROMPT: usize = 8;
const TOKENS: usize = 2;

/// A decoder: ids of shape `(batch, seq)` at a position, to logits.
type Decoder = Box<dyn FnMut(&Tensor, usize) -> Result<Tensor>>;

/// The fields of all configurations, with their names in Hugging Face's files. Each model reads
/// only its own.
fn config() -> Value {
    json!({
        "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "hidden_act": "silu", "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": 64, "rope_theta": 10000.0, "rope_local_base_freq": 10000.0,
        "rms_norm_eps": 1e-6, "layer_norm_eps": 1e-5, "norm_epsilon": 1e-5,
        "sliding_window": 32, "sliding_window_pattern": 2, "use_sliding_window": false, "max_window_layers": 2,
        "num_experts_per_tok": 2, "num_local_experts": 4,
        "tie_word_embeddings": false, "attention_bias": false, "use_bias": true, "use_cache": true,
        "use_flash_attn": false, "qk_layernorm": false, "query_pre_attn_scalar": 16,
    })
}

/// Adds the fields that only this model needs.
fn config_of(model: &str) -> Value {
    let mut config = config();
    let own = match model {
        "gemma" => json!({ "hidden_act": null }),
        "gemma3" => json!({ "num_key_value_heads": 1 }),
        "phi" | "stable_lm" => json!({ "partial_rotary_factor": 0.5 }),
        _ => json!({}),
    };
    if let (Value::Object(config), Value::Object(own)) = (&mut config, own) {
        config.extend(own);
    }
    config
}

fn read<C: serde::de::DeserializeOwned>(model: &str) -> Result<C> {
    serde_json::from_value(config_of(model)).map_err(candle_core::Error::wrap)
}

/// Loads the model of this module of candle-transformers.
fn load(model: &str, weights: VarBuilder<'_>) -> Result<Decoder> {
    /// For a model that `$load` creates and whose `forward` takes ids and a position.
    macro_rules! decoder {
        ($module:ident :: $model:ident, |$config:ident| $load:expr) => {{
            let $config: models::$module::Config = read(model)?;
            let mut model: models::$module::$model = $load;
            Ok(Box::new(move |ids: &Tensor, position: usize| model.forward(ids, position)))
        }};
    }
    match model {
        "gemma" => decoder!(gemma::Model, |c| models::gemma::Model::new(false, &c, weights)?),
        "gemma2" => decoder!(gemma2::Model, |c| models::gemma2::Model::new(false, &c, weights)?),
        "gemma3" => decoder!(gemma3::Model, |c| models::gemma3::Model::new(false, &c, weights)?),
        "mistral" => decoder!(mistral::Model, |c| models::mistral::Model::new(&c, weights)?),
        "mixtral" => decoder!(mixtral::Model, |c| models::mixtral::Model::new(&c, weights)?),
        "olmo" => decoder!(olmo::Model, |c| models::olmo::Model::new(&c, weights)?),
        "phi3" => decoder!(phi3::Model, |c| models::phi3::Model::new(&c, weights)?),
        "qwen2" => {
            decoder!(qwen2::ModelForCausalLM, |c| models::qwen2::ModelForCausalLM::new(
                &c, weights
            )?)
        }
        "qwen3" => {
            decoder!(qwen3::ModelForCausalLM, |c| models::qwen3::ModelForCausalLM::new(
                &c, weights
            )?)
        }
        "stable_lm" => decoder!(stable_lm::Model, |c| models::stable_lm::Model::new(&c, weights)?),
        "starcoder2" => {
            decoder!(starcoder2::Model, |c| models::starcoder2::Model::new(&c, weights)?)
        }
        "phi" => {
            let config: models::phi::Config = read(model)?;
            let mut model = models::phi::Model::new(&config, weights)?;
            Ok(Box::new(move |ids: &Tensor, _| model.forward(ids)))
        }
        other => candle_core::bail!("`{other}` is not a tiny model"),
    }
}

/// Loads a model and generates two tokens after a prompt of eight.
///
/// # Errors
///
/// When no model has this name, the device is full, or candle has no kernel for `dtype` that the
/// model needs.
pub fn generate(model: &str, dtype: DType, device: &Device) -> Result<()> {
    let mut forward = load(model, VarBuilder::zeros(dtype, device))?;
    forward(&token_ids(1, PROMPT, 128, device)?, 0)?;
    let token = token_ids(1, 1, 128, device)?;
    for position in PROMPT..PROMPT + TOKENS {
        forward(&token, position)?;
    }
    Ok(())
}
