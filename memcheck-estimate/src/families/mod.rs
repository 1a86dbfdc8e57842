//! The architectures: one row for each, under its name in config.json.
//!
//! A new model of candle-transformers needs a row in one of the tables in the files below. It must
//! also have a configuration in `tests/architectures.rs`.

mod adapted;
mod decoders;
mod defaults;
mod encoders;
#[cfg(test)]
mod modules;
mod pairs;
mod recurrent;

pub(crate) use decoders::decoder;

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::problem::Problem;
use crate::weights::Weights;

pub(crate) trait Model {
    /// Reads a prompt of ids with the shape `(batch, seq)`, beginning at the first position.
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor>;

    /// Reads one more token of the shape `(batch, 1)` at `position`.
    fn step(&mut self, token: &Tensor, position: usize) -> Result<Tensor>;

    /// Forgets the requests so far, in the way that candle has for it: a method of the model, or a
    /// new cache or state. Returns false, and changes nothing, if candle has none. Quantized
    /// models are never cleared.
    fn clear(&mut self) -> Result<bool> {
        Ok(false)
    }
}

pub(crate) struct Context {
    pub(crate) config: Value,
    pub(crate) name: String,
    /// The store behind `weights`.
    pub(crate) store: Weights,
    pub(crate) weights: VarBuilder<'static>,
    pub(crate) dtype: DType,
    pub(crate) device: Device,
    pub(crate) batch: usize,
    pub(crate) flash_attn: bool,
}

impl Context {
    /// Parses the configuration as a type of candle-transformers.
    pub(crate) fn read<C: DeserializeOwned>(&self) -> std::result::Result<C, Problem> {
        serde_json::from_value(self.config.clone()).map_err(|error| {
            let error = error.to_string();
            let key = self.culprit::<C>(&error).map(|key| format!(" at `{key}`")).unwrap_or_default();
            Problem::invalid_question(format!("the configuration of `{}` is invalid{key}: {error}", self.name))
                .hint("candle-transformers requires it: copy the value from the model's published config.json")
        })
    }

    /// Returns the key whose value causes this error: without the key, the error goes away or is a
    /// different one.
    fn culprit<C: DeserializeOwned>(&self, error: &str) -> Option<&str> {
        let config = self.config.as_object()?;
        let keys = config.keys().filter(|_| !error.starts_with("missing field"));
        keys.map(String::as_str).find(|&key| {
            let mut without = config.clone();
            without.remove(key);
            serde_json::from_value::<C>(without.into())
                .err()
                .is_none_or(|it| it.to_string() != error)
        })
    }
}

type Loaded = std::result::Result<Box<dyn Model>, Problem>;

/// How a model uses its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromptUse {
    /// Reads the prompt and continues it.
    Decoder,
    /// Reads the prompt only.
    Encoder,
    /// Reads the prompt and generates a separate text.
    Pair,
}

pub(crate) struct ModelFamily {
    /// The `model_type` values of its configurations.
    pub(crate) names: &'static [&'static str],
    pub(crate) kind: PromptUse,
    /// The keys that limit the positions. The first key that a configuration contains counts.
    positions: &'static [&'static str],
    /// Bytes per element of the mask that candle builds on the host, which has an element for each
    /// pair of tokens of the prompt; 0 if candle builds no mask there.
    pub(crate) mask: u64,
    /// Endings of names that candle asks for although no file contains them.
    pub(crate) absent: &'static [&'static str],
    /// True if candle reads one sequence at a time.
    pub(crate) one_sequence: bool,
    /// True if the model's code reads on the host which tokens go to which expert. Such code fails
    /// on a simulated device, because memory there has no values.
    pub(crate) reads_routing: bool,
    /// True if candle's code can use flash-attention (`use_flash_attn`).
    pub(crate) flash_attn: bool,
    /// Converts names of Hugging Face to those of candle.
    adapt: fn(&mut Map<String, Value>),
    /// Values that candle requires and published files omit, as JSON.
    defaults: &'static str,
    /// The types of `rope_scaling` that candle reads; `None` if candle does not read the key.
    scalings: Option<&'static [&'static str]>,
    pub(crate) load: fn(&Context) -> Loaded,
    /// A remark for the reader of the estimate.
    pub(crate) note: Option<&'static str>,
}

impl std::fmt::Debug for ModelFamily {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.names)
    }
}

/// The keys for the number of positions in different decoders.
const POSITIONS: &[&str] = &["max_position_embeddings", "n_positions", "seq_length", "max_seq_len"];

/// The remark for models with experts.
const ROUTED: &str = "all values are zeros, so every token is routed to the same experts: their \
    activations are the maximum";

impl ModelFamily {
    /// Creates a row with the values that most decoders share.
    const fn decoder(names: &'static [&'static str], load: fn(&Context) -> Loaded) -> Self {
        Self {
            names,
            kind: PromptUse::Decoder,
            positions: POSITIONS,
            mask: 4,
            absent: &[],
            one_sequence: false,
            reads_routing: false,
            flash_attn: false,
            adapt: |_| {},
            defaults: "{}",
            scalings: None,
            load,
            note: None,
        }
    }

    const fn encoder(names: &'static [&'static str], load: fn(&Context) -> Loaded) -> Self {
        Self { kind: PromptUse::Encoder, mask: 0, ..Self::decoder(names, load) }
    }

    const fn pair(names: &'static [&'static str], load: fn(&Context) -> Loaded) -> Self {
        Self { kind: PromptUse::Pair, ..Self::decoder(names, load) }
    }

    const fn adapted_by(self, adapt: fn(&mut Map<String, Value>)) -> Self {
        Self { adapt, ..self }
    }

    const fn with_defaults(self, defaults: &'static str) -> Self {
        Self { defaults, ..self }
    }

    const fn scaled_by(self, scalings: &'static [&'static str]) -> Self {
        Self { scalings: Some(scalings), ..self }
    }

    const fn reading_routing(self) -> Self {
        Self { reads_routing: true, ..self }
    }

    const fn flash(self) -> Self {
        Self { flash_attn: true, ..self }
    }

    const fn one_sequence(self) -> Self {
        Self { one_sequence: true, ..self }
    }

    const fn masked_by(self, mask: u64) -> Self {
        Self { mask, ..self }
    }

    /// Removes the limit of positions, for models to which candle sets none.
    const fn unbounded(self) -> Self {
        Self { positions: &[], ..self }
    }

    const fn with_note(self, note: &'static str) -> Self {
        Self { note: Some(note), ..self }
    }

    /// True if the decoder of a pair reads the prompt, and not the encoder.
    pub(crate) fn reads_into_decoder(&self) -> bool {
        self.names.contains(&"whisper")
    }

    /// Returns the key that limits the positions, and the number of positions.
    pub(crate) fn positions(&self, config: &Map<String, Value>) -> Option<(&'static str, u64)> {
        self.positions.iter().find_map(|&key| {
            let positions = config.get(key)?.as_u64()?;
            // The positions of RoBERTa begin after that of the padding.
            let padding = if self.names.contains(&"roberta") {
                1 + config.get("pad_token_id").and_then(Value::as_u64).unwrap_or(0)
            } else {
                0
            };
            Some((key, positions.saturating_sub(padding)))
        })
    }
}

fn tables() -> impl Iterator<Item = &'static ModelFamily> {
    [decoders::TABLE, recurrent::TABLE, encoders::TABLE, pairs::TABLE].into_iter().flatten()
}

/// Returns every `model_type` that can be estimated, sorted.
pub fn architectures() -> Vec<&'static str> {
    let mut names: Vec<_> = tables().flat_map(|family| family.names).copied().collect();
    names.sort_unstable();
    names
}

/// Returns the architecture of a configuration, if it can be estimated.
pub fn architecture(config: &Value) -> Option<String> {
    find(config.as_object()?).ok().map(|(name, _)| name)
}

/// Returns the name and the row of a configuration's architecture.
pub(crate) fn find(
    config: &Map<String, Value>,
) -> std::result::Result<(String, &'static ModelFamily), Problem> {
    let known = || format!("known architectures: {}", architectures().join(", "));
    let name = match (name_from_content(config), config.get("model_type")) {
        (Some(name), _) => name,
        (None, Some(Value::String(name))) => name,
        (None, None | Some(Value::Null)) => {
            return Err(
                Problem::invalid_question("the configuration has no `model_type`").hint(known())
            );
        }
        (None, Some(other)) => {
            return Err(Problem::invalid_question(format!(
                "`model_type` is {other}, which is not a string"
            ))
            .hint(known()));
        }
    };
    let row = |name: &str| tables().find(|family| family.names.contains(&name));
    if let Some(family) = row(name) {
        return Ok((name.to_owned(), family));
    }
    let problem =
        Problem::invalid_question(format!("`{name}` is not an architecture that can be estimated"));
    let text = config.get("text_config").and_then(|text| text.get("model_type")?.as_str());
    Err(problem.hint(match text.filter(|text| row(text).is_some()) {
        Some(text) => format!(
            "its text model is a `{text}`, which can be estimated: save the object `text_config` as a separate file"
        ),
        None => known(),
    }))
}

/// Returns the architecture of a configuration whose `model_type` is that of another one.
fn name_from_content(config: &Map<String, Value>) -> Option<&'static str> {
    let classes = config.get("architectures").and_then(Value::as_array);
    let mut names = classes.into_iter().flatten().filter_map(Value::as_str);
    // The `model_type` of JinaBERT is `bert`, and that of Based is `gpt2`.
    if names.any(|name| name.contains("JinaBert")) {
        Some("jina-bert")
    } else if config.contains_key("alt_mixer") {
        Some("based")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_architecture_has_one_row() {
        let names = architectures();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        for name in names {
            let config = json!({ "model_type": name });
            let (found, family) = find(config.as_object().unwrap()).unwrap();
            assert!(found == name && family.names.contains(&name));
        }
    }

    #[test]
    fn jina_bert_is_recognized_by_its_class() {
        let config = json!({ "model_type": "bert", "architectures": ["JinaBertForMaskedLM"] });
        assert_eq!(architecture(&config).as_deref(), Some("jina-bert"));
        assert_eq!(architecture(&json!({ "model_type": "none" })), None);
    }

    #[test]
    fn positions_of_roberta_begin_after_the_padding() {
        let config = json!({ "max_position_embeddings": 514, "pad_token_id": 1 });
        let positions = |name: &str| {
            let typed = json!({ "model_type": name });
            let (_, family) = find(typed.as_object().unwrap()).unwrap();
            family.positions(config.as_object().unwrap())
        };
        assert_eq!(positions("roberta"), Some(("max_position_embeddings", 512)));
        assert_eq!(positions("bert"), Some(("max_position_embeddings", 514)));
        assert_eq!(positions("t5"), None);
    }
}
