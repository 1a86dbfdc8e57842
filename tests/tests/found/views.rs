//! States that are a view of a larger tensor, and keep all of it.

/// A layer keeps three columns of its projection of the prompt, as a view of all columns.
mod lfm2 {
    crate::pair! {
        candle_transformers::models::lfm2 => crate::changed::lfm2;
        compared |device| {
            let config = crate::config::<subject::Lfm2Config>(r#"{
                "vocab_size": 64, "hidden_size": 64, "num_hidden_layers": 4,
                "num_attention_heads": 4, "num_key_value_heads": 2,
                "max_position_embeddings": 256, "tie_embedding": true,
                "layer_types": ["conv", "conv", "full_attention", "conv"]
            }"#)?.into_config(false);
            let model = subject::Model::new(&config, crate::weights(device))?;
            let mut cache = subject::Cache::new(true, model.dtype(), &config, device)?;
            let length = crate::size(256, 255);
            model.forward(&crate::prompt(length, device)?, 0, &mut cache)?;
            crate::compare(|| model.forward(&crate::prompt(1, device)?, length, &mut cache))?;
            Ok((model, cache))
        }
    }
}

/// The same in the recurrent layers of Griffin.
mod recurrent_gemma {
    crate::pair! {
        candle_transformers::models::recurrent_gemma => crate::changed::recurrent_gemma;
        compared |device| {
            let config = crate::config::<subject::Config>(r#"{
                "vocab_size": 64, "hidden_size": 64, "intermediate_size": 64,
                "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 1,
                "head_dim": 16, "lru_width": 64, "attention_window_size": 256, "conv1d_width": 4,
                "logits_soft_cap": 30.0, "hidden_activation": "gelu_pytorch_tanh",
                "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
                "block_types": ["recurrent", "recurrent", "attention"],
                "attention_bias": false, "max_seq_len": 256
            }"#)?;
            let mut model = subject::Model::new(&config, crate::weights(device))?;
            let length = crate::size(256, 255);
            model.forward(&crate::prompt(length, device)?, 0)?;
            crate::compare(|| model.forward(&crate::prompt(1, device)?, length))?;
            Ok(model)
        }
    }
}

/// The keys and values of one head keep the queries of all heads.
mod bigcode {
    crate::pair! {
        candle_transformers::models::bigcode => crate::changed::bigcode;
        compared |device| {
            let config = subject::Config {
                vocab_size: 64,
                max_position_embeddings: 256,
                num_hidden_layers: 2,
                hidden_size: 128,
                layer_norm_epsilon: 1e-5,
                n_inner: None,
                num_attention_heads: 8,
                multi_query: true,
                use_cache: true,
            };
            let mut model = subject::GPTBigCode::load(crate::weights(device), config)?;
            let length = crate::size(256, 255);
            model.forward(&crate::prompt(length, device)?, 0)?;
            crate::compare(|| model.forward(&crate::prompt(1, device)?, length))?;
            Ok(model)
        }
    }
}

/// The values keep queries and keys.
mod mixformer {
    crate::pair! {
        candle_transformers::models::mixformer => crate::changed::mixformer;
        compared |device| {
            let config = crate::config::<subject::Config>(r#"{
                "vocab_size": 64, "n_positions": 256, "n_embd": 128, "n_layer": 2, "n_inner": null,
                "n_head": 4, "rotary_dim": 16, "activation_function": "gelu_new",
                "layer_norm_epsilon": 1e-5, "tie_word_embeddings": false,
                "pad_vocab_size_multiple": 64
            }"#)?;
            let weights = crate::weights(device);
            let mut model = subject::MixFormerSequentialForCausalLM::new(&config, weights)?;
            model.forward(&crate::prompt(256, device)?)?;
            crate::compare(|| model.forward(&crate::prompt(1, device)?))?;
            Ok(model)
        }
    }
}

/// The values keep the part of the keys that was computed with them.
mod deepseek2 {
    crate::pair! {
        candle_transformers::models::deepseek2 => crate::changed::deepseek2;
        compared |device| {
            let config = crate::config::<subject::DeepSeekV2Config>(r#"{
                "vocab_size": 64, "hidden_size": 64, "intermediate_size": 64,
                "moe_intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                "n_shared_experts": 1, "n_routed_experts": null, "num_experts_per_tok": null,
                "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
                "rope_scaling": null, "attention_bias": false, "q_lora_rank": null,
                "qk_rope_head_dim": 16, "kv_lora_rank": 32, "v_head_dim": 32,
                "qk_nope_head_dim": 32, "n_group": 1, "topk_group": 1
            }"#)?;
            let mut model = subject::DeepSeekV2::new(&config, crate::weights(device))?;
            let length = crate::size(256, 255);
            model.forward(&crate::prompt(length, device)?, 0)?;
            crate::compare(|| model.forward(&crate::prompt(1, device)?, length))?;
            Ok(model)
        }
    }
}

/// Both kinds of streaming convolutions keep the columns that the next chunk needs, as a view of the
/// whole chunk.
mod mimi_conv {
    use candle_core::{StreamTensor, StreamingModule, Tensor};

    fn columns(chunk: StreamTensor) -> candle_core::Result<Tensor> {
        Ok(chunk.as_option().expect("whole frames").clone())
    }

    crate::pair! {
        candle_transformers::models::mimi::conv => crate::changed::mimi_conv;
        compared |device| {
            let (padding, weights) = (subject::PadMode::Constant, crate::weights(device));
            let mut down = subject::StreamableConv1d::new(
                64, 64, 3, 1, 1, 1, true, true, None, padding, weights.pp("down"),
            )?;
            let mut up = subject::StreamableConvTranspose1d::new(
                64, 64, 8, 4, 1, true, true, None, weights.pp("up"),
            )?;
            let chunk = StreamTensor::from_tensor(crate::input((1, 64, 1920), device)?);
            down.step(&chunk)?;
            up.step(&chunk)?;
            crate::compare(|| columns(down.step(&chunk)?))?;
            crate::compare(|| columns(up.step(&chunk)?))?;
            Ok((down, up))
        }
    }
}
