//! The tensors of models in GGUF files, by the names that llama.cpp gives them.

use super::file::{F32, Header, Q4_K, Q6_K, Type, Value};

/// The sizes of a decoder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) vocabulary: u64,
    pub(super) width: u64,
    pub(super) inner: u64,
    pub(super) layers: u64,
    pub(super) heads: u64,
    pub(super) key_heads: u64,
}

pub(super) const LLAMA_2_7B: Sizes =
    Sizes { vocabulary: 32_000, width: 4096, inner: 11_008, layers: 32, heads: 32, key_heads: 32 };

/// Small enough for a run in little time.
pub(super) const TINY: Sizes =
    Sizes { vocabulary: 128, width: 256, inner: 512, layers: 2, heads: 4, key_heads: 2 };

impl Sizes {
    pub(super) fn head(&self) -> u64 {
        self.width / self.heads
    }

    fn keys(&self) -> u64 {
        self.head() * self.key_heads
    }

    pub(super) fn header(&self, architecture: &str) -> Header {
        let numbers = [
            ("block_count", self.layers),
            ("context_length", 4096),
            ("embedding_length", self.width),
            ("feed_forward_length", self.inner),
            ("attention.head_count", self.heads),
            ("attention.head_count_kv", self.key_heads),
            ("rope.dimension_count", self.head()),
        ];
        let header = Header::new(architecture, &numbers.map(|(key, number)| (key, number as u32)));
        let key = |name: &str| format!("{architecture}.{name}");
        header
            .with(&key("attention.layer_norm_rms_epsilon"), Value::Fraction(1e-5))
            .with(&key("rope.freq_base"), Value::Fraction(1e4))
    }
}

/// Chooses the type of a tensor from its name and the number of its layer.
pub(super) type Recipe = fn(&str, u64) -> Type;

/// The recipe `Q4_K_M` of llama.cpp for 32 layers: in half of the layers, two kinds of tensors have
/// more bits.
pub(super) fn q4_k_m(name: &str, layer: u64) -> Type {
    let more = !(4..28).contains(&layer) || (layer - 4) % 3 == 2;
    match name {
        "output" => Q6_K,
        "attn_v" | "ffn_down" if more => Q6_K,
        _ => Q4_K,
    }
}

/// The tensors of Llama: embeddings, output, and in each layer attention, feed-forward and norms.
pub(super) fn llama(sizes: Sizes, recipe: Recipe) -> Header {
    let Sizes { vocabulary, width, inner, layers, .. } = sizes;
    let mut header = sizes.header("llama");
    header.tensor("token_embd.weight", &[width, vocabulary], recipe("token_embd", 0));
    header.tensor("output_norm.weight", &[width], F32);
    header.tensor("output.weight", &[width, vocabulary], recipe("output", 0));
    for layer in 0..layers {
        let matrices = [
            ("attn_q", width, width),
            ("attn_k", width, sizes.keys()),
            ("attn_v", width, sizes.keys()),
            ("attn_output", width, width),
            ("ffn_gate", width, inner),
            ("ffn_up", width, inner),
            ("ffn_down", inner, width),
        ];
        for (name, from, to) in matrices {
            let dims = [from, to];
            header.tensor(format!("blk.{layer}.{name}.weight"), &dims, recipe(name, layer));
        }
        for name in ["attn_norm", "ffn_norm"] {
            header.tensor(format!("blk.{layer}.{name}.weight"), &[width], F32);
        }
    }
    header
}

/// A tiny model of each architecture, whose matrices have one type.
pub(super) fn tiny(architecture: &str, of_type: Type) -> Header {
    // candle's Phi 2 divides queries, keys and values into thirds.
    let key_heads = if architecture == "phi2" { TINY.heads } else { TINY.key_heads };
    let sizes = Sizes { key_heads, ..TINY };
    let Sizes { vocabulary, width, inner, layers, .. } = sizes;
    let (head, keys, experts) = (sizes.head(), sizes.keys(), 4);
    let mut header = sizes.header(architecture);
    let has_bias = architecture == "phi2";
    let mut add = |name: &str, dims: &[u64]| {
        let of_type = if dims.len() == 1 { F32 } else { of_type };
        header.tensor(format!("{name}.weight"), dims, of_type);
        let out = dims[dims.len() - 1];
        let biased = ["attn_q", "attn_k", "attn_v"].iter().any(|end| name.ends_with(end));
        if has_bias && name != "token_embd" || architecture == "qwen2" && biased {
            header.tensor(format!("{name}.bias"), &[out], F32);
        }
    };
    add("token_embd", &[width, vocabulary]);
    add("output_norm", &[width]);
    // The others use the embeddings.
    if ["llama", "phi2", "phi3"].contains(&architecture) {
        add("output", &[width, vocabulary]);
    }
    for layer in 0..layers {
        let mut add = |name: &str, dims: &[u64]| add(&format!("blk.{layer}.{name}"), dims);
        add("attn_norm", &[width]);
        if architecture != "phi2" {
            add("ffn_norm", &[width]);
        }
        if architecture == "lfm2" && layer == 0 {
            add("shortconv.in_proj", &[width, 3 * width]);
            add("shortconv.out_proj", &[width, width]);
        } else {
            match architecture {
                "phi2" | "phi3" => add("attn_qkv", &[width, width + 2 * keys]),
                _ => {
                    add("attn_q", &[width, width]);
                    add("attn_k", &[width, keys]);
                    add("attn_v", &[width, keys]);
                }
            }
            add("attn_output", &[width, width]);
            if ["gemma3", "lfm2", "qwen3", "qwen3moe"].contains(&architecture) {
                add("attn_q_norm", &[head]);
                add("attn_k_norm", &[head]);
            }
        }
        if ["gemma3", "glm4"].contains(&architecture) {
            add("post_attention_norm", &[width]);
            add("post_ffw_norm", &[width]);
        }
        match architecture {
            "phi2" => add("ffn_up", &[width, inner]),
            "glm4" | "phi3" => add("ffn_up", &[width, 2 * inner]),
            "qwen3moe" => {
                add("ffn_gate_inp", &[width, experts]);
                add("ffn_gate_exps", &[width, inner, experts]);
                add("ffn_up_exps", &[width, inner, experts]);
                add("ffn_down_exps", &[inner, width, experts]);
            }
            _ => {
                add("ffn_gate", &[width, inner]);
                add("ffn_up", &[width, inner]);
            }
        }
        if architecture != "qwen3moe" {
            add("ffn_down", &[inner, width]);
        }
    }
    if architecture == "lfm2" {
        header.tensor("blk.0.shortconv.conv.weight", &[3, width], F32);
    }
    let key = |name: &str| format!("{architecture}.{name}");
    let number = |number: u64| Value::Number(number as u32);
    let header = header
        .with(&key("attention.key_length"), number(head))
        .with(&key("attention.value_length"), number(head))
        .with(&key("attention.layer_norm_epsilon"), Value::Fraction(1e-5));
    match architecture {
        "gemma3" => header.with(&key("attention.sliding_window"), number(512)),
        "qwen3moe" => header
            .with(&key("expert_count"), number(experts))
            .with(&key("expert_used_count"), number(2))
            .with(&key("expert_feed_forward_length"), number(inner)),
        "lfm2" => header
            .with(&key("attention.head_count_kv"), Value::Numbers(vec![0, 2]))
            .with(&key("shortconv.l_cache"), number(3)),
        _ => header,
    }
}
