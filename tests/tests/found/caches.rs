//! Caches of keys and values, and tables that each session or layer has for itself.

/// A cache that was reset allocates the length to which the longest request has grown it.
mod kv_cache_reset {
    crate::pair! {
        candle_nn::kv_cache => crate::changed::kv_cache_reset;
        compared |device| {
            let mut cache = subject::KvCache::new(2, 64);
            for length in [1024, 1] {
                cache.reset();
                let tokens = crate::input((1, 4, length, 32), device)?;
                let (keys, _) = cache.append(&tokens, &tokens)?;
                crate::compare(|| Ok(keys))?;
            }
            Ok(cache)
        }
    }
}

/// A long prompt makes the cache grow step by step, and each step copies it.
mod kv_cache_growth {
    crate::pair! {
        candle_nn::kv_cache => crate::changed::kv_cache_growth;
        compared |device| {
            let mut cache = subject::Cache::new(2, 512);
            cache.append(&crate::input((1, 4, 4096, 32), device)?)?;
            crate::compare(|| Ok(cache.current_data()?.expect("the tokens")))?;
            Ok(cache)
        }
    }
}

/// The first token allocates a cache for all positions that the model was trained for.
mod gemma3 {
    crate::pair! {
        candle_transformers::models::gemma3 => crate::changed::gemma3;
        compared |device| {
            let config = crate::config::<subject::Config>(r#"{
                "attention_bias": false, "head_dim": 32, "hidden_activation": "gelu_pytorch_tanh",
                "hidden_size": 64, "intermediate_size": 64, "num_attention_heads": 4,
                "num_hidden_layers": 6, "num_key_value_heads": 1, "rms_norm_eps": 1e-6,
                "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "vocab_size": 64,
                "final_logit_softcapping": null, "attn_logit_softcapping": null,
                "query_pre_attn_scalar": 32, "sliding_window": 512, "sliding_window_pattern": 6,
                "max_position_embeddings": 32768
            }"#)?;
            let mut model = subject::Model::new(false, &config, crate::weights(device))?;
            model.forward(&crate::prompt(1, device)?, 0)?;
            crate::compare(|| {
                model.forward(&crate::prompt(511, device)?, 1)?;
                model.forward(&crate::prompt(1, device)?, 512)
            })?;
            Ok(model)
        }
    }
}

/// Each layer computes the tables of its rotary embedding for all positions, although there are only
/// two different ones. Layers, heads and positions are those of Gemma 3 with a billion parameters.
mod gemma3_tables {
    crate::pair! {
        candle_transformers::models::gemma3 => crate::changed::gemma3_tables, device = "cuda";
        compared |device| {
            let config = crate::config::<subject::Config>(r#"{
                "attention_bias": false, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
                "hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 4,
                "num_hidden_layers": 26, "num_key_value_heads": 1, "rms_norm_eps": 1e-6,
                "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "vocab_size": 16,
                "final_logit_softcapping": null, "attn_logit_softcapping": null,
                "query_pre_attn_scalar": 256, "sliding_window": 512, "sliding_window_pattern": 6,
                "max_position_embeddings": 32768
            }"#)?;
            let mut model = subject::Model::new(false, &config, crate::weights(device))?;
            crate::compare(|| model.forward(&crate::prompt(8, device)?, 0))?;
            Ok(model)
        }
    }
}

/// Each session computes the tables of the rotary embedding for all positions. A clone of an empty
/// cache shares them.
mod llama_tables {
    use candle_core::{DType, Device, Result};
    use candle_transformers::models::llama::{Cache, Config};

    fn new(sessions: usize, config: &Config, device: &Device) -> Result<Vec<Cache>> {
        (0..sessions).map(|_| Cache::new(true, DType::F32, config, device)).collect()
    }

    fn cloned(sessions: usize, config: &Config, device: &Device) -> Result<Vec<Cache>> {
        Ok(vec![Cache::new(true, DType::F32, config, device)?; sessions])
    }

    crate::pair! {
        self::new => self::cloned;
        |device| {
            let mut config = Config::config_7b_v2(false);
            config.num_hidden_layers = 1;
            Ok(subject(8, &config, device)?)
        }
    }
}

/// The biases of the attention for every pair of all positions are a table of the model. Heads are
/// those of the published model, which has four times as many positions.
mod jina_bert {
    use candle_core::Module;

    crate::pair! {
        candle_transformers::models::jina_bert => crate::changed::jina_bert, device = "cuda";
        compared |device| {
            let config = subject::Config {
                vocab_size: 64,
                hidden_size: 48,
                num_hidden_layers: 1,
                intermediate_size: 64,
                max_position_embeddings: crate::size(2048, 256),
                ..subject::Config::v2_base()
            };
            let model = subject::BertModel::new(crate::weights(device), &config)?;
            let states = model.forward(&crate::prompt(256, device)?)?;
            crate::compare(|| Ok(states))?;
            Ok(model)
        }
    }
}

/// The layers of the encoder are built as those of a decoder, so that they keep keys and values.
mod marian {
    crate::pair! {
        candle_transformers::models::marian => crate::changed::marian;
        compared |device| {
            let config = subject::Config {
                vocab_size: 64,
                decoder_vocab_size: None,
                max_position_embeddings: 256,
                d_model: 64,
                encoder_layers: 2,
                encoder_ffn_dim: 64,
                encoder_attention_heads: 4,
                decoder_layers: 1,
                decoder_ffn_dim: 64,
                decoder_attention_heads: 4,
                ..subject::Config::opus_mt_en_fr()
            };
            let mut model = subject::MTModel::new(&config, crate::weights(device))?;
            let encoded = model.encoder().forward(&crate::prompt(256, device)?, 0)?;
            crate::compare(|| Ok(encoded))?;
            Ok(model)
        }
    }
}

/// The end of a session clears all layers but one, which keeps the end of its input and, if the
/// weights are trainable, the graph that computed it.
mod mimi {
    use candle_core::{DType, StreamTensor, Tensor};

    crate::pair! {
        candle_transformers::models::mimi::encodec => crate::changed::encodec, device = "cuda";
        |device| {
            let variables = candle_nn::VarMap::new();
            let weights = candle_nn::VarBuilder::from_varmap(&variables, DType::F32, device);
            let mut model = subject::Encodec::new(subject::Config::v0_1(Some(8)), weights)?;
            let frame = Tensor::zeros((1, 1, 1920), DType::F32, device)?;
            model.encode_step(&StreamTensor::from_tensor(frame))?;
            model.reset_state();
            Ok(model)
        }
    }
}

/// Each codebook keeps the sums from which its vectors were computed, for a function that is not
/// called.
mod mimi_codebooks {
    crate::pair! {
        candle_transformers::models::mimi::quantization => crate::changed::mimi_quantization,
        device = "cuda";
        compared |device| {
            let (input, output) = (Some(512), Some(512));
            let (books, vectors) = (crate::size(32, 2), crate::size(2048, 64));
            let weights = crate::weights(device);
            let codebooks = subject::SplitResidualVectorQuantizer::new(
                256, input, output, books, vectors, weights,
            )?;
            crate::compare(|| {
                codebooks.decode(&codebooks.encode(&crate::input((1, 512, 3), device)?)?)
            })?;
            Ok(codebooks)
        }
    }
}
