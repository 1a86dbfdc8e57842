//! Adapts a published configuration to candle's types: renames keys and adds the values that
//! Hugging Face's classes use if the file does not have them.

use serde_json::{Map, Value, json};

use super::ModelFamily;

impl ModelFamily {
    /// Returns the configuration in the form that candle's types parse, and remarks for the reader
    /// about the changes.
    pub(crate) fn adapted(
        &self,
        config: &Map<String, Value>,
        flash_attn: bool,
    ) -> (Map<String, Value>, Vec<String>) {
        let mut config = config.clone();
        // A null value means the same as a missing key.
        config.retain(|_, value| !value.is_null());
        // These keys concern speed, or training that candle does not support.
        if self.flash_attn {
            config.insert("use_flash_attn".to_owned(), json!(flash_attn));
        }
        default(&mut config, "use_flash_attn", json!(false));
        default(&mut config, "use_cache", json!(true));
        default(&mut config, "use_sliding_window", json!(false));
        default(&mut config, "max_window_layers", json!(0));
        first_of_several(&mut config);
        rope_parameters(&mut config);
        (self.adapt)(&mut config);
        for (key, value) in self.defaults() {
            default(&mut config, &key, value);
        }
        let mut notes = Vec::new();
        if let Some(known) = self.scalings {
            notes.extend(rope_scaling(&mut config, self.names[0], known));
        }
        notes.extend(quantized(&config));
        (config, notes)
    }

    fn defaults(&self) -> Map<String, Value> {
        serde_json::from_str(self.defaults).unwrap_or_default()
    }
}

pub(super) fn default(config: &mut Map<String, Value>, key: &str, value: Value) {
    if !config.contains_key(key) {
        config.insert(key.to_owned(), value);
    }
}

/// Copies the value of one key to another, if that one is missing.
pub(super) fn rename(config: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = config.get(from).cloned() {
        default(config, to, value);
    }
}

/// Keeps the first token id of a list. Chat models stop at one of several tokens, but most of
/// candle's types accept a single one.
fn first_of_several(config: &mut Map<String, Value>) {
    for (_, value) in config.iter_mut().filter(|(key, _)| key.ends_with("_token_id")) {
        if let Some(first) = value.as_array().and_then(|all| all.first()) {
            *value = first.clone();
        }
    }
}

/// Copies `rope_parameters` of newer files to the separate keys of older files.
fn rope_parameters(config: &mut Map<String, Value>) {
    let Some(Value::Object(parameters)) = config.get("rope_parameters").cloned() else { return };
    let parameters_of = |layers: &str| parameters.get(layers).and_then(Value::as_object);
    let whole = parameters_of("full_attention").unwrap_or(&parameters);
    for key in ["rope_theta", "partial_rotary_factor"] {
        if let Some(value) = whole.get(key) {
            default(config, key, value.clone());
        }
    }
    if let Some(theta) =
        parameters_of("sliding_attention").and_then(|local| local.get("rope_theta"))
    {
        default(config, "rope_local_base_freq", theta.clone());
    }
    if whole.get("rope_type").is_some_and(|kind| kind != "default") {
        default(config, "rope_scaling", whole.clone().into());
    }
}

/// Writes the type of a known scaling under both keys, because candle's types differ in the key
/// that they read. Removes a scaling that candle's type cannot parse, and returns a remark about
/// it.
fn rope_scaling(config: &mut Map<String, Value>, model: &str, known: &[&str]) -> Option<String> {
    let scaling = config.get_mut("rope_scaling")?.as_object_mut()?;
    let stated = scaling.get("rope_type").or_else(|| scaling.get("type"));
    let kind = match stated.and_then(Value::as_str).unwrap_or("default") {
        // The first name of this type.
        "su" => "longrope".to_owned(),
        other => other.to_owned(),
    };
    if known.contains(&kind.as_str()) {
        for key in ["type", "rope_type"] {
            scaling.insert(key.to_owned(), json!(kind));
        }
        return None;
    }
    config.remove("rope_scaling");
    (kind != "default").then(|| {
        format!(
            "candle's `{model}` refuses `rope_scaling` of type `{kind}`: the estimate leaves it \
             out, because it does not change the memory"
        )
    })
}

/// Returns a remark for a quantized model, because candle loads its weights unquantized.
fn quantized(config: &Map<String, Value>) -> Option<String> {
    let quantized = config.get("quantization_config")?;
    let method = quantized.get("quant_method").and_then(Value::as_str);
    let method = method.map(|method| format!(" ({method})")).unwrap_or_default();
    Some(format!(
        "candle does not read `quantization_config`{method} of the file: the weights are those of \
         the unquantized model"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{find, tables};
    use super::*;

    fn adapted(config: Value) -> (Map<String, Value>, Vec<String>) {
        let config = config.as_object().unwrap();
        find(config).unwrap().1.adapted(config, false)
    }

    #[test]
    fn defaults_are_objects() {
        for family in tables() {
            let read: Result<Map<String, Value>, _> = serde_json::from_str(family.defaults);
            assert!(read.is_ok(), "{family:?}: {read:?}");
        }
    }

    #[test]
    fn a_value_of_the_file_overrides_a_default_and_null_does_not() {
        let head_dim = |value: Value| {
            let config = json!({ "model_type": "gemma3_text", "head_dim": value });
            adapted(config).0["head_dim"].clone()
        };
        assert_eq!((head_dim(json!(64)), head_dim(Value::Null)), (json!(64), json!(256)));
    }

    #[test]
    fn the_first_files_of_phi_have_the_padding_of_their_class() {
        let padding = |config: Value| adapted(config).0["pad_vocab_size_multiple"].clone();
        assert_eq!(padding(json!({ "model_type": "phi-msft" })), 64);
        let own = json!({ "model_type": "mixformer-sequential", "pad_vocab_size_multiple": 8 });
        assert_eq!(padding(own), 8);
    }

    #[test]
    fn an_unknown_scaling_is_left_out_with_a_note() {
        let scaling_and_notes = |kind: &str| {
            let scaling = json!({ "type": kind, "factor": 2.0 });
            let config = json!({ "model_type": "llama", "rope_scaling": scaling });
            let (config, notes) = adapted(config);
            (config.get("rope_scaling").is_some(), notes.len())
        };
        assert_eq!(scaling_and_notes("llama3"), (true, 0));
        assert_eq!(scaling_and_notes("linear"), (false, 1));
        assert_eq!(scaling_and_notes("default"), (false, 0));
        let phi = json!({ "model_type": "phi3", "rope_scaling": { "rope_type": "su" } });
        assert_eq!(adapted(phi).0["rope_scaling"]["type"], "longrope");
        // Candle's type for Qwen 2 does not have the key.
        let qwen = json!({ "model_type": "qwen2", "rope_scaling": { "type": "yarn" } });
        assert!(adapted(qwen).1.is_empty());
    }

    #[test]
    fn rope_parameters_of_newer_files_are_read() {
        let llama3 = json!({ "rope_theta": 5e5, "rope_type": "llama3", "factor": 8.0 });
        let (llama, _) = adapted(json!({ "model_type": "llama", "rope_parameters": llama3 }));
        assert_eq!(
            (&llama["rope_theta"], &llama["rope_scaling"]["factor"]),
            (&json!(5e5), &json!(8.0))
        );
        let gemma = json!({
            "full_attention": { "rope_theta": 1e6, "rope_type": "default" },
            "sliding_attention": { "rope_theta": 1e4 },
        });
        let (gemma, _) = adapted(json!({ "model_type": "gemma3_text", "rope_parameters": gemma }));
        assert_eq!(
            (&gemma["rope_theta"], &gemma["rope_local_base_freq"]),
            (&json!(1e6), &json!(1e4))
        );
    }

    #[test]
    fn quantized_weights_are_noted_and_the_first_end_token_is_kept() {
        let config = json!({
            "model_type": "qwen2", "eos_token_id": [7, 8],
            "quantization_config": { "quant_method": "awq", "bits": 4 },
        });
        let (config, notes) = adapted(config);
        assert_eq!(config["eos_token_id"], 7);
        assert!(notes.len() == 1 && notes[0].contains("(awq)"), "{notes:?}");
    }
}
