//! The memory that a prompt needs beyond the weights of its model, by a closed formula of the sizes.
//!
//! The formula is that of code without fused operations: an operation has its inputs and its result
//! at once, a tensor is freed after its last use, no operation works in place, and the logits are
//! those of the last position. With s tokens of the width d, h heads of the width w, k heads of keys
//! and as many of values, the inner width f, l layers and v words, the elements are
//!
//! ```text
//! cache      2 l s k w                             (decoders)
//! attention  s d + h s² + max(s h w, h s²)         (encoders: + the keys and values of one layer)
//! feed       s d + 3 s f                           (without a gate: s d + 2 s f)
//! head       s d + v                               (decoders; after an encoder: + keys and values)
//! ```
//!
//! A prompt needs its ids, the cache, and the largest of the three steps.

use serde_json::Value;

/// The sizes of a model that the formula has.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    width: u64,
    heads: u64,
    head: u64,
    key_heads: u64,
    inner: u64,
    layers: u64,
    words: u64,
}

/// What follows from the architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Decoder,
    Encoder,
    /// The encoder reads the prompt. The decoder reads one token, with the keys and values of the
    /// prompt in one layer.
    Pair,
}

/// Architectures whose feed-forward layers have no gate.
const WITHOUT_GATE: [&str; 17] = [
    "bert",
    "camembert",
    "distilbert",
    "falcon",
    "gpt_bigcode",
    "marian",
    "mixformer-sequential",
    "mt5",
    "phi",
    "phi-msft",
    "roberta",
    "starcoder2",
    "t5",
    "umt5",
    "xlm-roberta",
    "whisper",
    "deberta-v2",
];

/// The reason why the formula does not describe an architecture.
fn without_formula(model: &str) -> Option<&'static str> {
    match model {
        "mamba" | "mamba2" | "rwkv5" | "rwkv6" | "rwkv7" | "recurrent_gemma" | "lfm2" | "based" => {
            Some("layers without attention")
        }
        "deberta-v2" => Some("attention with relative positions"),
        "deepseek_v2" => Some("keys and values in a latent form"),
        "whisper" => Some("reads 30 seconds of sound"),
        _ => None,
    }
}

/// Returns the bytes that a prompt of `seq` tokens needs beyond the weights, or the reason why there
/// is no formula. `config` is that of `model`, and `element` is the size of its type.
pub(crate) fn beyond_weights(
    model: &str,
    is_encoder: bool,
    config: &Value,
    seq: u64,
    element: u64,
) -> Result<u64, &'static str> {
    if let Some(reason) = without_formula(model) {
        return Err(reason);
    }
    let config = config.get("text_config").unwrap_or(config);
    let sizes = Sizes::read(model, config).ok_or("a size is not in the configuration")?;
    let kind = match model {
        "t5" | "mt5" | "umt5" | "marian" => Kind::Pair,
        _ if is_encoder => Kind::Encoder,
        _ => Kind::Decoder,
    };
    let gated = if config["is_gated_act"] == true || config["feed_forward_proj"] == "gated-gelu" {
        true
    } else {
        !WITHOUT_GATE.contains(&model)
    };
    Ok(4 * seq + element * sizes.elements(kind, gated, seq))
}

impl Sizes {
    fn read(model: &str, config: &Value) -> Option<Self> {
        let number =
            |keys: &[&str]| keys.iter().find_map(|key| config.get(*key).and_then(Value::as_u64));
        let width = number(&["hidden_size", "d_model", "dim", "n_embd"])?;
        let heads = match model {
            "t5" | "mt5" | "umt5" => number(&["num_heads"])?,
            "marian" => number(&["encoder_attention_heads"])?,
            _ => number(&["num_attention_heads", "n_heads", "n_head"])?,
        };
        let head = number(&["head_dim", "kv_channels", "d_kv"]).unwrap_or(width / heads);
        let key_heads = match model {
            "falcon" | "gpt_bigcode" => 1,
            "mixformer-sequential" | "phi-msft" => heads,
            _ => number(&["multi_query_group_num", "num_key_value_heads"]).unwrap_or(heads),
        };
        let inner = match model {
            "falcon" => 4 * width,
            "granitemoehybrid" => number(&["shared_intermediate_size"])?,
            "marian" => number(&["encoder_ffn_dim"])?,
            _ => number(&[
                "moe_intermediate_size",
                "d_ff",
                "ffn_hidden_size",
                "n_inner",
                "hidden_dim",
                "intermediate_size",
            ])
            .unwrap_or(4 * width),
        };
        let layers = number(&["decoder_layers", "num_layers", "num_hidden_layers", "n_layer"])
            .or_else(|| number(&["n_layers"]))?;
        let words = number(&["padded_vocab_size", "vocab_size"])?;
        Some(Self { width, heads, head, key_heads, inner, layers, words })
    }

    fn elements(&self, kind: Kind, gated: bool, seq: u64) -> u64 {
        let hidden = seq * self.width;
        let scores = self.heads * seq * seq;
        let queries = seq * self.heads * self.head;
        let keys = seq * self.key_heads * self.head;
        let feed = hidden + if gated { 3 } else { 2 } * seq * self.inner;
        match kind {
            Kind::Decoder => {
                let attention = hidden + scores + queries.max(scores);
                let head = hidden + self.words;
                2 * self.layers * keys + attention.max(feed).max(head)
            }
            Kind::Encoder => encoder_attention(hidden, queries, scores).max(feed),
            Kind::Pair => {
                let decoding = hidden + 2 * queries + self.words;
                encoder_attention(hidden, queries, scores).max(feed).max(decoding)
            }
        }
    }
}

/// The scores of queries and keys while the values are live, or the softmax of the scores.
fn encoder_attention(hidden: u64, queries: u64, scores: u64) -> u64 {
    hidden + queries + scores + scores.max(2 * queries)
}

/// The formula has the steps of Llama-2-7B.
pub(crate) fn assert_steps() {
    let config = serde_json::json!({
        "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 11_008,
        "num_hidden_layers": 32, "vocab_size": 32_000,
    });
    let bytes = |seq| beyond_weights("llama", false, &config, seq, 2);
    // Feed-forward, and for a long prompt attention.
    let cache = |seq: u64| 2 * 32 * seq * 4096;
    assert_eq!(bytes(256), Ok(4 * 256 + 2 * (cache(256) + 256 * (4096 + 3 * 11_008))));
    let long = 4096 * 4096 + 2 * 32 * 4096 * 4096;
    assert_eq!(bytes(4096), Ok(4 * 4096 + 2 * (cache(4096) + long)));
    assert_eq!(beyond_weights("mamba", false, &config, 8, 2), Err("layers without attention"));
}
