//! The wire types between `cargo memcheck estimate` and the estimator, which is a separate program,
//! because it compiles candle and the command must not.

mod by_law;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The version of these types; both sides must have the same.
pub const VERSION: u32 = 3;

/// A model and the sizes to estimate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// [`VERSION`] of the sender.
    pub version: u32,
    /// The model's config.json; null with `gguf`.
    pub config: serde_json::Value,
    /// The absolute path of a GGUF file, which is then the model.
    pub gguf: Option<PathBuf>,
    /// The absolute path of the model's safetensors file, or of the index of several.
    pub weights: Option<PathBuf>,
    /// Sequences in one batch, at least 1.
    pub batch: u64,
    /// Tokens of the prompt, at least 1.
    pub seq: u64,
    /// Tokens that are generated after the prompt.
    pub generate: u64,
    /// True to measure a training step instead of inference.
    pub train: bool,
    /// True to run the model with flash-attention.
    pub flash_attn: bool,
    /// The name of the element type; `None` for that of the configuration.
    pub dtype: Option<String>,
}

/// The answer of the estimator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The figures.
    Measured(Box<Estimate>),
    /// The reason for a refusal.
    Refused(EstimateRefusal),
}

/// The figures of one model, in bytes unless the field is a count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// `model_type` of the configuration, or `general.architecture` of the GGUF file.
    pub model: String,
    /// The element type. Of a GGUF file the type that most of its bytes have.
    pub dtype: String,
    /// Sequences in one batch.
    pub batch: u64,
    /// Tokens of the prompt.
    pub seq: u64,
    /// Tokens that were generated.
    pub generate: u64,
    /// Elements of the requested tensors. A name that is requested twice counts once.
    pub parameters: u64,
    /// Bytes of those tensors. A name that is requested twice counts twice. Of a GGUF file the
    /// bytes in the file, where each tensor counts once.
    pub weights: u64,
    /// The tensors of a GGUF file that candle reads, by their type. The type with the most bytes is
    /// the first. Empty without a GGUF file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<StoredTensors>,
    /// The tensors of the safetensors files; only with [`Question::weights`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<WeightFiles>,
    /// Other memory of a loaded model, such as rotary tables and masks. Of a GGUF file also the
    /// bytes by which dequantized and padded tensors are larger than those of the file.
    pub tables: u64,
    /// The peak of loading.
    pub load_peak: u64,
    /// Inference; `None` with [`Question::train`], and if the model could not be run.
    pub inference: Option<Inference>,
    /// A training step; only with [`Question::train`].
    pub training: Option<Training>,
    /// The highest of all peaks.
    pub peak: u64,
    /// Facts that a reader must know to interpret the figures.
    pub notes: Vec<String>,
}

impl Estimate {
    /// True if the model was run. Otherwise it was only loaded.
    pub fn is_run(&self) -> bool {
        self.inference.is_some() || self.training.is_some()
    }
}

/// The safetensors files of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightFiles {
    /// The number of tensors.
    pub tensors: u64,
    /// Their bytes: the sum over the headers, or the total size in the index if a file is absent.
    pub bytes: u64,
    /// The number of tensors that candle does not read.
    pub unread: u64,
}

/// The tensors of one type in a GGUF file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTensors {
    /// The name of the type: `q4_0`.
    pub r#type: String,
    /// The number of tensors.
    pub tensors: u64,
    /// Their elements.
    pub elements: u64,
    /// Their bytes in the file.
    pub bytes: u64,
}

/// The memory of inference, in addition to the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inference {
    /// Bytes that stay after the prompt: keys, values, and other state for the next call.
    pub cache: u64,
    /// The same after the last generated token.
    pub cache_after: u64,
    /// The tensor that the model returns for the prompt.
    pub logits: u64,
    /// The peak of the prompt, minus weights, tables and `cache`.
    pub activations: u64,
    /// The peak of the prompt.
    pub prompt_peak: u64,
    /// The peak of generation; 0 if no token is generated.
    pub generation_peak: u64,
}

/// The memory of one training step, in addition to the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Training {
    /// Variables of the model.
    pub variables: u64,
    /// The variables that the backward pass reaches.
    pub reached: u64,
    /// The gradients of the reached variables.
    pub gradients: u64,
    /// The state of AdamW.
    pub optimizer: u64,
    /// The peak of the step, minus weights, tables, gradients and optimizer state.
    pub activations: u64,
    /// The peak of the step.
    pub peak: u64,
}

impl Training {
    /// True if the backward pass reaches every variable: the step trains the whole model.
    pub fn is_whole(&self) -> bool {
        self.reached == self.variables
    }
}

/// A refusal to estimate, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EstimateRefusal {
    /// The category of the reason.
    pub why: Why,
    /// The reason in one sentence.
    pub message: String,
    /// The remedy.
    pub hint: Option<String>,
    /// The largest batch that the model runs at, if candle cannot run the requested batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_at: Option<u64>,
}

/// The category of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The question is invalid, for example its configuration or its sizes.
    Question,
    /// The device is full.
    OutOfMemory,
    /// The model's code or the instrument failed.
    NotMeasured,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_survives_the_wire() {
        let refusal = EstimateRefusal {
            why: Why::OutOfMemory,
            message: "full".to_owned(),
            hint: None,
            runs_at: None,
        };
        let answer = Answer::Refused(refusal);
        let text = serde_json::to_string(&answer).unwrap();
        assert!(text.contains("out-of-memory"), "{text}");
        assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
    }

    #[test]
    fn a_step_that_leaves_variables_out_is_not_whole() {
        let step = Training {
            variables: 3,
            reached: 3,
            gradients: 0,
            optimizer: 0,
            activations: 0,
            peak: 0,
        };
        assert!(step.is_whole());
        assert!(!Training { reached: 2, ..step }.is_whole());
    }
}
