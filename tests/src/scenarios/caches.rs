//! Key-value caches of finished requests (candle#2950, #2987, #3437).

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_nn::kv_cache::KvCache;
use candle_transformers::models::{llama, stable_lm};
use memcheck_runtime::Trial;

use super::{Family, HISTORY, Scenario, scenario};
use crate::llama::{kv_bytes_per_token, tiny_config};
use crate::token_ids;

const SOURCE: &str = include_str!("caches.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, one_cache_for_all_requests, "cache-never-cleared", Enlarged),
    scenario!(SOURCE, model_without_a_way_to_clear, "cache-never-cleared", Enlarged),
    scenario!(SOURCE, sessions_that_never_end, "cache-never-cleared", Steady),
];

/// Sequences in a request.
const BATCH: usize = 2;
/// Tokens that a request decodes.
const TOKENS: usize = 4;

/// A server with one cache. The model is stock Llama, whose cache is separate from the model.
pub mod one_cache_for_all_requests {
    use super::*;

    /// The tokens of a request, `2 layers batch kv_heads head_dim 4` each.
    pub fn bytes(_leg: Family) -> u64 {
        (TOKENS * kv_bytes_per_token(&tiny_config(), BATCH, DType::F32)) as u64
    }

    /// Continues in the cache of the previous request.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let (device, config) = (trial.device().clone(), tiny_config());
        let model = llama::Llama::load(VarBuilder::zeros(DType::F32, &device), &config)?;
        let token = Tensor::zeros((BATCH, 1), DType::U32, &device)?;
        let mut cache = llama::Cache::new(true, DType::F32, &config, &device)?;
        trial.iterate(|request| {
            let _request = tracing::info_span!("request").entered();
            for position in request * TOKENS..(request + 1) * TOKENS {
                // leaks: one_cache_for_all_requests
                model.forward(&token, position, &mut cache)?;
            }
            Ok(())
        })
    }

    /// Begins each request with a new cache.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let (device, config) = (trial.device().clone(), tiny_config());
        let model = llama::Llama::load(VarBuilder::zeros(DType::F32, &device), &config)?;
        let token = Tensor::zeros((BATCH, 1), DType::U32, &device)?;
        trial.iterate(|_| {
            let mut cache = llama::Cache::new(true, DType::F32, &config, &device)?;
            for position in 0..TOKENS {
                model.forward(&token, position, &mut cache)?;
            }
            Ok(())
        })
    }
}

/// Stock StableLM, which has its cache inside and no method to clear it.
pub mod model_without_a_way_to_clear {
    use super::*;

    const LAYERS: usize = 2;
    const HEADS: usize = 2;
    const WIDTH: usize = 64;

    /// The tokens of a request, keys and values of every layer.
    pub fn bytes(_leg: Family) -> u64 {
        (TOKENS * 2 * LAYERS * BATCH * WIDTH * 4) as u64
    }

    fn model(device: &Device) -> anyhow::Result<stable_lm::Model> {
        let config = serde_json::json!({
            "vocab_size": 64, "intermediate_size": 128, "hidden_size": WIDTH,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
            "num_key_value_heads": HEADS, "hidden_act": "silu", "partial_rotary_factor": 0.25,
            "rope_theta": 10000.0, "max_position_embeddings": 256, "layer_norm_eps": 1e-5,
            "use_cache": true,
        });
        let config = serde_json::from_value(config)?;
        Ok(stable_lm::Model::new(&config, VarBuilder::zeros(DType::F32, device))?)
    }

    /// Runs request after request on one model.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let mut model = model(trial.device())?;
        let prompt = token_ids(BATCH, TOKENS, 64, trial.device())?;
        trial.iterate(|request| {
            // leaks: model_without_a_way_to_clear
            model.forward(&prompt, request * TOKENS)?;
            Ok(())
        })
    }

    /// Loads the model again for each request, because candle offers no other way.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let prompt = token_ids(BATCH, TOKENS, 64, &device)?;
        trial.iterate(|_| {
            model(&device)?.forward(&prompt, 0)?;
            Ok(())
        })
    }
}

/// A chat server with a cache for each session.
pub mod sessions_that_never_end {
    use super::*;

    const HEADS: usize = 2;
    const HEAD_DIM: usize = 16;
    /// Tokens for which a cache has room from its first one on.
    const ROOM: usize = 32;

    /// Keys and values of a whole cache, regardless of its fill level.
    pub fn bytes(_leg: Family) -> u64 {
        (2 * HEADS * ROOM * HEAD_DIM * 4) as u64
    }

    /// Keeps the cache of every session, in case the session comes back.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Drops all caches but the two newest.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |sessions| sessions.truncate(2))
    }

    fn run(trial: &mut Trial, evict: fn(&mut Vec<KvCache>)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut sessions = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            let token = Tensor::zeros((1, HEADS, 1, HEAD_DIM), DType::F32, &device)?;
            let mut cache = KvCache::new(2, ROOM);
            let _decode = tracing::info_span!("decode").entered();
            // leaks: sessions_that_never_end
            cache.append(&token, &token)?;
            sessions.insert(0, cache);
            evict(&mut sessions);
            Ok(())
        })
    }
}
