//! Tiny configurations of every architecture, with Hugging Face's field names.

use memcheck_core::wire::estimate::{Question, VERSION};
use serde_json::{Value, json};

/// The fields that every decoder requires.
fn common() -> Value {
    json!({
        "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "hidden_act": "silu",
        "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 64,
        "rope_theta": 10000.0, "rope_local_base_freq": 10000.0, "rms_norm_eps": 1e-6,
        "layer_norm_eps": 1e-5, "norm_epsilon": 1e-5, "tie_word_embeddings": false,
        "attention_bias": false, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
        "torch_dtype": "float32",
    })
}

/// The fields that one architecture adds or replaces.
fn own(model: &str) -> Value {
    let chatglm = json!({
        "num_layers": 2, "padded_vocab_size": 128, "hidden_size": 64, "ffn_hidden_size": 128,
        "kv_channels": 16, "num_attention_heads": 4, "seq_length": 64, "layernorm_epsilon": 1e-5,
        "rmsnorm": true, "apply_residual_connection_post_layernorm": false,
        "post_layer_norm": true, "add_bias_linear": false, "add_qkv_bias": true,
        "bias_dropout_fusion": true, "multi_query_attention": true, "multi_query_group_num": 2,
        "apply_query_key_layer_scaling": true, "attention_softmax_in_fp32": true,
        "fp32_residual_connection": false,
    });
    let experts = json!({
        "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 64, "decoder_sparse_step": 1, "norm_topk_prob": true,
    });
    let bert = json!({
        "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
        "type_vocab_size": 2, "initializer_range": 0.02, "position_embedding_type": "absolute",
    });
    let gpt = json!({
        "n_positions": 64, "n_layer": 2, "n_embd": 64, "n_head": 4, "n_inner": 128,
        "layer_norm_epsilon": 1e-5,
    });
    let more = |base: &Value, more: Value| merged(base.clone(), more);
    match model {
        "mixtral" => json!({ "num_local_experts": 4, "num_experts_per_tok": 2 }),
        "qwen2_moe" | "qwen3_moe" => experts,
        "gemma2" => json!({ "query_pre_attn_scalar": 16, "sliding_window": 32 }),
        "gemma3" | "gemma3_text" => json!({
            "query_pre_attn_scalar": 16, "sliding_window": 32, "sliding_window_pattern": 2,
            "num_key_value_heads": 1,
        }),
        "gemma4" => json!({ "text_config": merged(common(), own("gemma4_text")) }),
        "gemma4_text" => json!({
            "sliding_window": 32, "layer_types": ["sliding_attention", "full_attention"],
            "global_head_dim": 16, "num_global_key_value_heads": 2,
        }),
        "phi" => json!({ "qk_layernorm": false, "partial_rotary_factor": 0.5 }),
        "mixformer-sequential" | "phi-msft" => more(
            &gpt,
            json!({
                "rotary_dim": 16, "activation_function": "gelu_new", "pad_vocab_size_multiple": 64
            }),
        ),
        "gpt_bigcode" => more(&gpt, json!({ "multi_query": true })),
        "starcoder2" => json!({ "use_bias": true, "sliding_window": 32 }),
        "stablelm" | "stablelm_epoch" => json!({ "partial_rotary_factor": 0.5 }),
        "falcon" => json!({
            "layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "hidden_dropout": 0.0,
            "attention_dropout": 0.0, "alibi": false, "new_decoder_architecture": false,
            "multi_query": true, "parallel_attn": true, "bias": false,
        }),
        "granitemoehybrid" => json!({
            "layer_types": ["attention", "attention"], "shared_intermediate_size": 128,
        }),
        "chatglm" => chatglm,
        "deepseek_v2" => json!({
            "moe_intermediate_size": 32, "n_shared_experts": 1, "n_routed_experts": 4,
            "num_experts_per_tok": 2, "first_k_dense_replace": 1, "qk_rope_head_dim": 8,
            "kv_lora_rank": 16, "v_head_dim": 16, "qk_nope_head_dim": 16, "n_group": 1,
            "topk_group": 1, "topk_method": "greedy", "scoring_func": "softmax",
        }),
        "helium" => json!({ "mlp_bias": false }),
        "lfm2" => json!({
            "layer_types": ["conv", "full_attention"], "conv_L_cache": 3, "block_multiple_of": 32,
        }),
        "based" => more(
            &gpt,
            json!({
                "n_layer": 3, "alt_mixer_layers": [1], "alt_mixer_2_layers": [2],
                "alt_mixer": {
                    "num_heads": 4, "feature_dim": 8, "feature_map": { "input_dim": 8 },
                },
                "alt_mixer_2": { "num_heads": 4, "window_size": 16 },
            }),
        ),
        "rwkv7" => json!({
            "decay_low_rank_dim": 8, "a_low_rank_dim": 8, "v_low_rank_dim": 4,
            "gate_low_rank_dim": 16, "norm_eps": 1e-5, "hidden_act": "sqrelu",
        }),
        "new" => json!({
            "type_vocab_size": 2, "rope_scaling": { "factor": 2.0, "type": "ntk" },
            "hidden_act": "gelu", "layer_norm_type": "layer_norm", "pack_qkv": true,
        }),
        "mamba2" => json!({ "state_size": 16, "head_dim": 16, "n_groups": 1 }),
        "rwkv5" | "rwkv6" => json!({
            "attention_hidden_size": 64, "head_size": 16, "num_attention_heads": 16,
            "layer_norm_epsilon": 1e-5, "rescale_every": 6,
        }),
        "recurrent_gemma" => json!({
            "attention_window_size": 32, "conv1d_width": 4, "logits_soft_cap": 30.0,
            "partial_rotary_factor": 0.5, "block_types": ["recurrent", "attention"],
        }),
        "bert" | "camembert" | "roberta" | "xlm-roberta" => bert,
        "distilbert" => json!({
            "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "activation": "gelu",
            "initializer_range": 0.02,
        }),
        "modernbert" => json!({
            "global_attn_every_n_layers": 2, "global_rope_theta": 160000.0, "local_attention": 16,
            "local_rope_theta": 10000.0,
        }),
        "jina-bert" => more(&bert, json!({ "position_embedding_type": "alibi" })),
        "nomic_bert" => more(&gpt, json!({ "activation_function": "swiglu" })),
        "deberta-v2" => more(
            &bert,
            json!({
                "relative_attention": true, "max_relative_positions": -1, "position_buckets": 16,
                "position_biased_input": false, "pos_att_type": "p2c|c2p", "type_vocab_size": 0,
                "share_att_key": true, "norm_rel_ebd": "layer_norm",
            }),
        ),
        "t5" | "mt5" | "umt5" => json!({
            "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4,
            "relative_attention_num_buckets": 8, "dropout_rate": 0.1, "layer_norm_epsilon": 1e-6,
            "initializer_factor": 1.0, "is_encoder_decoder": true,
        }),
        "marian" => json!({
            "d_model": 64, "encoder_layers": 2, "encoder_ffn_dim": 128,
            "encoder_attention_heads": 4, "decoder_layers": 2, "decoder_ffn_dim": 128,
            "decoder_attention_heads": 4, "is_encoder_decoder": true,
            "activation_function": "swish", "decoder_start_token_id": 0, "scale_embedding": true,
            "forced_eos_token_id": 0, "share_encoder_decoder_embeddings": true,
        }),
        "whisper" => json!({
            "num_mel_bins": 8, "max_source_positions": 16, "d_model": 64,
            "encoder_attention_heads": 4, "encoder_layers": 2, "max_target_positions": 64,
            "decoder_attention_heads": 4, "decoder_layers": 2,
        }),
        _ => json!({}),
    }
}

fn merged(mut base: Value, more: Value) -> Value {
    if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
        base.extend(more);
    }
    base
}

/// A question about a tiny model, without generation.
pub(crate) fn question(model: &str) -> Question {
    let (name, class) = match model {
        "jina-bert" => ("bert", json!({ "architectures": ["JinaBertForMaskedLM"] })),
        other => (other, json!({})),
    };
    let typed = merged(json!({ "model_type": name }), class);
    Question {
        version: VERSION,
        config: merged(merged(common(), own(model)), typed),
        gguf: None,
        weights: None,
        batch: 1,
        seq: 8,
        generate: 0,
        train: false,
        flash_attn: false,
        dtype: None,
    }
}

/// True for encoders, which cannot generate.
pub(crate) fn is_encoder(model: &str) -> bool {
    model.contains("bert") || ["deberta-v2", "new", "stella_en_v5"].contains(&model)
}
