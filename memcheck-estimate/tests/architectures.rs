//! Runs every architecture on the CPU, from a tiny configuration with Hugging Face's field names.

use candle_core::Device;
use memcheck_core::wire::estimate::{Answer, Estimate, EstimateRefusal, Question, VERSION, Why};
use memcheck_estimate::{answer, architectures};
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

fn question(model: &str) -> Question {
    let (name, class) = match model {
        "jina-bert" => ("bert", json!({ "architectures": ["JinaBertForMaskedLM"] })),
        other => (other, json!({})),
    };
    let typed = merged(json!({ "model_type": name }), class);
    Question {
        version: VERSION,
        config: merged(merged(common(), own(model)), typed),
        batch: 1,
        seq: 8,
        generate: 0,
        train: false,
        flash_attn: false,
        dtype: None,
    }
}

#[track_caller]
fn measured(question: &Question) -> Estimate {
    match answer(question, &Device::Cpu) {
        Answer::Measured(estimate) => *estimate,
        Answer::Refused(refusal) => panic!("{}: {refusal:?}", question.config["model_type"]),
    }
}

fn refused(question: &Question) -> EstimateRefusal {
    match answer(question, &Device::Cpu) {
        Answer::Measured(estimate) => panic!("{estimate:?}"),
        Answer::Refused(refusal) => refusal,
    }
}

/// True for encoders, which cannot generate.
fn is_encoder(model: &str) -> bool {
    model.contains("bert") || ["deberta-v2", "new", "stella_en_v5"].contains(&model)
}

// All of this is one test, because host figures include the allocations of all threads.
#[test]
fn every_architecture_runs_and_invalid_questions_are_refused() {
    let mut failed = Vec::new();
    for model in architectures() {
        let generate = if is_encoder(model) { 0 } else { 2 };
        match answer(&Question { generate, ..question(model) }, &Device::Cpu) {
            Answer::Measured(estimate) => {
                // A tied tensor that candle reads twice takes its bytes twice.
                let twice = if model == "gpt_bigcode" { 128 * 64 } else { 0 };
                let noted = estimate.notes.iter().any(|note| note.contains("32,768 B"));
                assert_eq!(noted, twice > 0, "{model}: {:?}", estimate.notes);
                let loaded = 4 * (estimate.parameters + twice);
                if estimate.weights != loaded || estimate.peak < loaded {
                    failed.push(format!("{model}: {loaded} {estimate:?}"));
                }
            }
            Answer::Refused(refusal) => failed.push(format!("{model}: {refusal:?}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    caches_grow_by_their_formula();
    states_have_one_size();
    one_sequence_at_a_time();
    training_reports_the_reached_variables();
    invalid_questions_are_refused();
}

/// The cache contains keys and values: 2 layers of 2 heads of 16, twice, in 4 bytes. Llama also
/// keeps the mask of its prompt, a byte for each pair.
fn caches_grow_by_their_formula() {
    const TOKEN: u64 = 2 * 2 * 2 * 16 * 4;
    for (model, mask) in [("llama", 64 * 64), ("mistral", 0)] {
        let asked = Question { seq: 48, generate: 16, ..question(model) };
        let inference = measured(&asked).inference.expect("it is inference");
        // The mask of 48 tokens is larger than 1 KiB, the size from which host blocks count.
        let mask = if mask > 0 { 48 * 48 } else { 0 };
        assert_eq!(inference.cache, 48 * TOKEN + mask, "{model}");
        assert_eq!(inference.cache_after, 64 * TOKEN + mask, "{model}");
    }
}

/// The state of RWKV 7 has the same size after any number of tokens.
fn states_have_one_size() {
    for seq in [1, 2, 24] {
        let estimate = measured(&Question { seq, generate: 4, ..question("rwkv7") });
        let inference = estimate.inference.expect("it is inference");
        assert_eq!((inference.cache, inference.cache_after), (0, 0), "{seq} tokens");
    }
    // The formula of the parameters does not contain the tensors that candle reads from the first
    // layer and discards.
    let (c, v, f, [w, a, g]) = (64, 128, 128, [8, 8, 16]);
    let layer = 4 * c * c + 2 * c * f + 2 * c * (w + a + g) + (6 + 2 + 3 + 2 + 1 + 4) * c;
    let residual = 2 * c * 4 + c;
    let parameters = 2 * v * c + 2 * layer + residual + 2 * c + 2 * c;
    assert_eq!(measured(&question("rwkv7")).parameters, parameters);
}

fn one_sequence_at_a_time() {
    for model in ["based", "rwkv7"] {
        let refusal = refused(&Question { batch: 2, ..question(model) });
        assert_eq!(refusal.why, Why::Question, "{refusal:?}");
        assert_eq!(refusal.hint.as_deref(), Some("use --batch 1"));
    }
}

fn training_reports_the_reached_variables() {
    let step = |model: &str| {
        let estimate = measured(&Question { train: true, ..question(model) });
        (estimate.weights, estimate.training.expect("it is training"))
    };
    // In a model without fused operations every variable is reached, and AdamW keeps two moments of
    // each.
    let (_, whole) = step("modernbert");
    assert!(whole.is_whole(), "{whole:?}");
    // Fused normalization has no backward pass, so the variables before the last one are not
    // reached.
    let (weights, part) = step("llama");
    assert!(!part.is_whole() && part.reached == 1, "{part:?}");
    assert_eq!(part.gradients, 128 * 64 * 4, "of the head: vocabulary x width x 4");
    assert!(part.optimizer <= 2 * weights, "{part:?}");
}

fn invalid_questions_are_refused() {
    let llama = || question("llama");
    let with = |key: &str, value: Value| {
        let mut asked = llama();
        asked.config[key] = value;
        asked
    };
    let without = |key: &str| {
        let mut asked = llama();
        asked.config.as_object_mut().expect("an object").remove(key);
        asked
    };
    let bert = Question { generate: 1, ..question("bert") };
    let mut never = question("gemma3");
    never.config["sliding_window_pattern"] = json!(0);
    let cases: Vec<(Question, Why, &str)> = vec![
        (with("model_type", json!("gpt5")), Why::Question, "`gpt5` is not an architecture"),
        (without("model_type"), Why::Question, "no `model_type`"),
        (without("hidden_size"), Why::Question, "missing field `hidden_size`"),
        (with("hidden_size", json!("wide")), Why::Question, "invalid type: string \"wide\""),
        (with("hidden_size", json!(1_u64 << 60)), Why::Question, "`hidden_size`"),
        (with("num_hidden_layers", json!(1_000_000)), Why::Question, "(limit 10,000)"),
        (with("num_attention_heads", json!(0)), Why::Question, "`num_attention_heads` of the"),
        (with("num_hidden_layers", json!(0)), Why::Question, "`num_hidden_layers` of the"),
        (
            with("num_attention_heads", json!(3)),
            Why::Question,
            "is not divisible by `num_key_value_heads` (2)",
        ),
        (
            with("hidden_size", json!(-64)),
            Why::Question,
            "`llama` is invalid at `hidden_size`: invalid value",
        ),
        (
            with("vocab_size", json!(1e30)),
            Why::Question,
            "`llama` is invalid at `vocab_size`: invalid type",
        ),
        (with("model_type", json!(7)), Why::Question, "`model_type` is 7, which is not a string"),
        (never, Why::NotMeasured, "the model panicked: "),
        (Question { config: json!([1]), ..llama() }, Why::Question, "not a JSON object"),
        (Question { batch: 0, ..llama() }, Why::Question, "must be at least 1"),
        (Question { seq: 0, ..llama() }, Why::Question, "must be at least 1"),
        (Question { batch: u64::MAX, seq: 2, ..llama() }, Why::Question, "tokens at once"),
        (Question { seq: u64::MAX, generate: 2, ..llama() }, Why::Question, "tokens at once"),
        (Question { seq: 60, generate: 5, ..llama() }, Why::Question, "the model's 64 positions"),
        (Question { dtype: Some("i4".into()), ..llama() }, Why::Question, "not an element type"),
        (
            Question { flash_attn: true, ..question("bert") },
            Why::Question,
            "`bert` has no flash-attention",
        ),
        (Question { flash_attn: true, ..llama() }, Why::Question, "f16 and bf16 only"),
        (
            Question { generate: 1, train: true, ..llama() },
            Why::Question,
            "does not generate tokens",
        ),
        (bert, Why::Question, "`bert` is an encoder"),
        (Question { seq: 65, ..question("marian") }, Why::Question, "the model's 64 positions"),
        (Question { generate: 64, ..question("marian") }, Why::Question, "the model's 64"),
    ];
    for (asked, why, text) in cases {
        let refusal = refused(&asked);
        assert_eq!(refusal.why, why, "{refusal:?}");
        assert!(refusal.message.contains(text), "{text}: {refusal:?}");
    }
    let mut seen = with("model_type", json!("llava"));
    seen.config["text_config"] = json!({ "model_type": "llama" });
    let seen = refused(&seen).hint.expect("a hint");
    assert!(
        seen.contains("its text model is a `llama`") && seen.contains("`text_config`"),
        "{seen}"
    );
    let unknown = refused(&with("model_type", json!("gpt5"))).hint.expect("a hint");
    assert!(architectures().iter().all(|name| unknown.contains(name)), "{unknown}");
    // Marian's encoder and decoder have separate positions. Whisper's prompt and its generated
    // tokens share theirs.
    assert_eq!(measured(&Question { seq: 60, generate: 8, ..question("marian") }).generate, 8);
    let whisper = refused(&Question { seq: 60, generate: 8, ..question("whisper") });
    assert_eq!(whisper.hint.as_deref(), Some("use at most --seq 56"));
    let long = refused(&Question { seq: 60, generate: 5, ..llama() }).hint;
    assert_eq!(long.as_deref(), Some("use at most --seq 59"));
}
