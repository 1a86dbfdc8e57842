//! Rejects sizes of a configuration that no model can have, before candle multiplies and divides
//! them.

use memcheck_core::size::exact;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// The largest integer that a size of a configuration can have. The product of two sizes and the
/// number of tokens must fit into 64 bits.
pub(crate) const LARGEST: u64 = 1 << 27;
/// The maximum number of layers.
pub(crate) const MOST_LAYERS: u64 = 10_000;

/// The endings of keys whose integers are not sizes.
const NO_SIZES: &[&str] = &["theta", "base", "base_freq", "seed", "token_id", "token_index"];

/// Keys that cannot be 0 in any model.
const POSITIVE: &[&str] = &[
    "d_kv",
    "d_model",
    "decoder_attention_heads",
    "decoder_layers",
    "dim",
    "encoder_attention_heads",
    "encoder_layers",
    "head_dim",
    "head_size",
    "hidden_size",
    "kv_channels",
    "max_position_embeddings",
    "max_source_positions",
    "max_target_positions",
    "multi_query_group_num",
    "n_embd",
    "n_head",
    "n_heads",
    "n_layer",
    "n_layers",
    "n_positions",
    "num_attention_heads",
    "num_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "num_layers",
    "padded_vocab_size",
    "seq_length",
    "vocab_size",
];

/// Pairs of a width and the heads that divide it, for models that do not set the width of a head.
const SHARED: &[(&str, &str)] = &[
    ("hidden_size", "num_attention_heads"),
    ("n_embd", "n_head"),
    ("dim", "n_heads"),
    ("d_model", "encoder_attention_heads"),
    ("d_model", "decoder_attention_heads"),
    ("num_attention_heads", "num_key_value_heads"),
];

/// Keys that set the width of a head independently of the model's width.
const OWN_WIDTH: &[&str] = &["head_dim", "head_size", "kv_channels", "kv_lora_rank", "d_kv"];

/// Rejects integers that are so large that a multiplication could overflow.
pub(crate) fn check_bounds(config: &Map<String, Value>) -> Result<(), Problem> {
    for (key, value) in config {
        let Some(number) = value.as_u64() else { continue };
        if NO_SIZES.iter().any(|end| key.ends_with(end)) {
            continue;
        }
        let layers = key.contains("layer") || key == "n_layer";
        let most = if layers { MOST_LAYERS } else { LARGEST };
        if number > most {
            return Err(Problem::invalid_question(format!(
                "`{key}` of the configuration is {} (limit {})",
                exact(number),
                exact(most)
            ))
            .hint(format!("compare `{key}` with the model's published config.json")));
        }
    }
    Ok(())
}

/// Rejects sizes of 0, and heads that do not divide their width evenly.
pub(crate) fn check_divisions(config: &Map<String, Value>) -> Result<(), Problem> {
    let number = |key: &str| config.get(key).and_then(Value::as_u64);
    if let Some(key) = POSITIVE.iter().find(|key| number(key) == Some(0)) {
        return Err(Problem::invalid_question(format!("`{key}` of the configuration is 0"))
            .hint(format!("set `{key}` to at least 1")));
    }
    let own = OWN_WIDTH.iter().any(|key| config.contains_key(*key));
    for &(width, heads) in SHARED {
        let (Some(whole), Some(parts)) = (number(width), number(heads)) else { continue };
        let is_key_value = heads == "num_key_value_heads";
        if (is_key_value || !own) && whole % parts != 0 {
            return Err(Problem::invalid_question(format!(
                "`{width}` of the configuration is {}, which is not divisible by `{heads}` ({})",
                exact(whole),
                exact(parts)
            ))
            .hint(
                "all heads have the same width, and all key/value heads serve the same number of heads",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result_of(check: fn(&Map<String, Value>) -> Result<(), Problem>, config: Value) -> String {
        match check(config.as_object().unwrap()) {
            Ok(()) => "sound".to_owned(),
            Err(problem) => format!("{:?}", problem.answer()),
        }
    }

    #[test]
    fn a_key_that_is_not_a_size_can_have_any_value() {
        for key in ["rope_theta", "rotary_emb_base", "eos_token_id"] {
            assert_eq!(result_of(check_bounds, json!({ key: 1_u64 << 60 })), "sound", "{key}");
        }
        for key in ["vocab_size", "hidden_size"] {
            assert!(
                result_of(check_bounds, json!({ key: 1_u64 << 60 }))
                    .contains("(limit 134,217,728)")
            );
        }
        assert!(result_of(check_bounds, json!({ "n_layer": 10_001 })).contains("(limit 10,000)"));
    }

    #[test]
    fn a_width_must_be_divisible_by_its_heads() {
        let result = |config| result_of(check_divisions, config);
        assert_eq!(result(json!({ "hidden_size": 64, "num_attention_heads": 4 })), "sound");
        let uneven = || json!({ "hidden_size": 64, "num_attention_heads": 5 });
        assert!(result(uneven()).contains("not divisible by `num_attention_heads` (5)"));
        let mut wide = uneven();
        wide["head_dim"] = json!(16);
        assert_eq!(result(wide.clone()), "sound");
        wide["num_key_value_heads"] = json!(2);
        assert!(result(wide).contains("not divisible by `num_key_value_heads` (2)"));
        assert!(result(json!({ "n_embd": 64, "n_head": 3 })).contains("`n_head`"));
    }

    #[test]
    fn layers_must_not_be_0_but_token_types_can_be() {
        assert!(result_of(check_divisions, json!({ "num_hidden_layers": 0 })).contains("is 0"));
        assert_eq!(
            result_of(check_divisions, json!({ "type_vocab_size": 0, "max_window_layers": 0 })),
            "sound"
        );
    }
}
