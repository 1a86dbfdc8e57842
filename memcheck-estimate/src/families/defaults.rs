//! Values that candle requires and published files omit. Each is the default of the model's class
//! in Hugging Face's transformers.
//!
//! A size is included only if files that the authors published omit it. A file without its width is
//! broken, and the estimator must not repair it.

/// For all generations of Gemma.
pub(super) const GEMMA: &str = r#"{
    "attention_bias": false, "head_dim": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000.0
}"#;

pub(super) const GEMMA2: &str = r#"{
    "attention_bias": false, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
    "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000.0
}"#;

/// The text part of Gemma 3 with images contains only the values that differ from those of the
/// class.
pub(super) const GEMMA3: &str = r#"{
    "attention_bias": false, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 131072, "num_attention_heads": 8, "num_key_value_heads": 4,
    "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-6, "rope_local_base_freq": 10000.0,
    "rope_theta": 1000000.0, "sliding_window": 4096, "sliding_window_pattern": 6,
    "vocab_size": 262208
}"#;

pub(super) const LLAMA: &str = r#"{ "max_position_embeddings": 2048, "rms_norm_eps": 1e-6 }"#;

pub(super) const MISTRAL: &str = r#"{
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "rope_theta": 10000.0
}"#;

pub(super) const MIXTRAL: &str = r#"{
    "hidden_act": "silu", "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
    "rope_theta": 1000000.0
}"#;

/// For Qwen 2 and 3, dense and with experts.
pub(super) const QWEN: &str = r#"{
    "attention_bias": false, "decoder_sparse_step": 1, "hidden_act": "silu",
    "max_position_embeddings": 32768, "norm_topk_prob": false, "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0, "tie_word_embeddings": false
}"#;

/// A tied head is the default of every class that does not override it, and files omit default
/// values.
pub(super) const SMOLLM3: &str = r#"{
    "hidden_act": "silu", "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
    "rope_theta": 2000000.0, "tie_word_embeddings": true
}"#;

pub(super) const PHI: &str = r#"{
    "hidden_act": "gelu_new", "layer_norm_eps": 1e-5, "max_position_embeddings": 2048,
    "partial_rotary_factor": 0.5, "qk_layernorm": false, "rope_theta": 10000.0,
    "tie_word_embeddings": false
}"#;

/// For the first files of Phi 1.5 and Phi 2.
pub(super) const MIXFORMER: &str = r#"{ "pad_vocab_size_multiple": 64 }"#;

pub(super) const PHI3: &str = r#"{
    "hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0
}"#;

pub(super) const STARCODER2: &str = r#"{
    "hidden_act": "gelu_pytorch_tanh", "max_position_embeddings": 4096, "norm_epsilon": 1e-5,
    "rope_theta": 10000.0, "use_bias": true
}"#;

pub(super) const STABLELM: &str = r#"{
    "hidden_act": "silu", "layer_norm_eps": 1e-5, "max_position_embeddings": 4096,
    "partial_rotary_factor": 0.25, "rope_theta": 10000.0
}"#;

/// For both generations of OLMo.
pub(super) const OLMO: &str = r#"{
    "attention_bias": false, "hidden_act": "silu", "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false
}"#;

pub(super) const FALCON: &str = r#"{
    "alibi": false, "attention_dropout": 0.0, "bias": false, "bos_token_id": 11,
    "eos_token_id": 11, "hidden_dropout": 0.0, "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-5, "multi_query": true, "new_decoder_architecture": false,
    "parallel_attn": true
}"#;

pub(super) const GLM4: &str = r#"{
    "hidden_act": "silu", "max_position_embeddings": 131072, "rms_norm_eps": 1.5625e-7,
    "rope_theta": 10000.0, "tie_word_embeddings": false
}"#;

pub(super) const DEEPSEEK2: &str = r#"{
    "attention_bias": false, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0
}"#;

pub(super) const HELIUM: &str = r#"{
    "attention_bias": false, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
    "max_position_embeddings": 4096, "mlp_bias": false, "rms_norm_eps": 1e-8,
    "rope_theta": 100000.0, "tie_word_embeddings": false
}"#;

pub(super) const LFM2: &str = r#"{ "tie_embedding": true }"#;

pub(super) const RWKV: &str = r#"{
    "head_size": 64, "layer_norm_epsilon": 1e-5, "rescale_every": 6
}"#;

pub(super) const RWKV7: &str = r#"{ "version": "V7", "head_size": 64 }"#;

pub(super) const RECURRENT_GEMMA: &str = r#"{
    "attention_bias": false, "hidden_activation": "gelu_pytorch_tanh", "logits_soft_cap": 30.0,
    "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-6, "rope_theta": 10000.0
}"#;

/// For encoders that are similar to BERT, JinaBERT and RoBERTa included.
pub(super) const BERT: &str = r#"{
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "initializer_range": 0.02, "layer_norm_eps": 1e-12, "pad_token_id": 0,
    "position_embedding_type": "absolute"
}"#;

pub(super) const ROBERTA: &str = r#"{
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "layer_norm_eps": 1e-12, "pad_token_id": 1, "position_embedding_type": "absolute"
}"#;

pub(super) const DISTILBERT: &str = r#"{
    "activation": "gelu", "initializer_range": 0.02, "max_position_embeddings": 512,
    "pad_token_id": 0
}"#;

pub(super) const MODERNBERT: &str = r#"{
    "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "layer_norm_eps": 1e-5,
    "local_attention": 128, "local_rope_theta": 10000.0, "pad_token_id": 50283
}"#;

pub(super) const DEBERTA: &str = r#"{
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "initializer_range": 0.02, "layer_norm_eps": 1e-7, "max_relative_positions": -1,
    "pos_att_type": [], "position_biased_input": true, "relative_attention": false,
    "type_vocab_size": 0
}"#;

/// For GTE and Stella. The number of token types is 0 because only the small Stella has them.
pub(super) const STELLA: &str = r#"{
    "activation_fn": "gelu", "norm_eps": 1e-12, "rope_theta": 10000.0, "scaling_factor": 0.0,
    "type_vocab_size": 0
}"#;

pub(super) const T5: &str = r#"{
    "dropout_rate": 0.1, "eos_token_id": 1, "initializer_factor": 1.0, "is_encoder_decoder": true,
    "layer_norm_epsilon": 1e-6, "pad_token_id": 0, "relative_attention_num_buckets": 32
}"#;

pub(super) const MARIAN: &str = r#"{
    "activation_function": "gelu", "eos_token_id": 0, "forced_eos_token_id": 0,
    "is_encoder_decoder": true, "scale_embedding": false,
    "share_encoder_decoder_embeddings": true
}"#;
