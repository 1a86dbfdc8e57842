//! What `cargo memcheck estimate` and the estimator say to each other: a
//! question about one model, and its figures or why there are none.
//!
//! The estimator (`memcheck-estimate`) is a program of its own, because it is
//! built with candle and the command is not.

mod by_law;

use serde::{Deserialize, Serialize};

/// The version of these types; both sides must have the same.
pub const VERSION: u32 = 1;

/// What is to be estimated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// [`VERSION`] of who asks.
    pub version: u32,
    /// The model's config.json.
    pub config: serde_json::Value,
    /// Sequences at once, at least 1.
    pub batch: u64,
    /// Tokens of the prompt, at least 1.
    pub seq: u64,
    /// Tokens that are generated after it.
    pub generate: u64,
    /// Whether a training step is measured in place of inference.
    pub train: bool,
    /// The element type, by its name; `None`: the configuration's own.
    pub dtype: Option<String>,
}

/// What the estimator answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The figures.
    Measured(Box<Estimate>),
    /// Why there are none.
    Refused(Refusal),
}

/// The figures of one model. Bytes, but for counts that say what they count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// `model_type` of the configuration.
    pub model: String,
    /// The element type.
    pub dtype: String,
    /// Sequences at once.
    pub batch: u64,
    /// Tokens of the prompt.
    pub seq: u64,
    /// Tokens that were generated.
    pub generate: u64,
    /// Elements of the tensors that the model asked for, each name once.
    pub parameters: u64,
    /// Those tensors, as often as they were asked for.
    pub weights: u64,
    /// What else a loaded model holds: rotary tables, masks.
    pub tables: u64,
    /// The peak of loading.
    pub load_peak: u64,
    /// Inference; `None` with [`Question::train`], and where the model was
    /// loaded and could not be run.
    pub inference: Option<Inference>,
    /// A training step; only with [`Question::train`].
    pub training: Option<Training>,
    /// The highest of all peaks.
    pub peak: u64,
    /// What a reader must know of these figures.
    pub notes: Vec<String>,
}

impl Estimate {
    /// Whether the model was run, and not just loaded.
    pub fn is_run(&self) -> bool {
        self.inference.is_some() || self.training.is_some()
    }
}

/// What inference takes beside the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inference {
    /// What stays when the prompt has been read: keys and values, and whatever
    /// else the model keeps for the next call.
    pub cache: u64,
    /// The same after the last token that was generated.
    pub cache_after: u64,
    /// What the model returns for the prompt.
    pub logits: u64,
    /// The peak of the prompt without weights, tables and `cache`.
    pub activations: u64,
    /// The peak of the prompt.
    pub prompt_peak: u64,
    /// The peak of generation; 0 without.
    pub generation_peak: u64,
}

/// What one training step takes beside the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Training {
    /// Variables of the model.
    pub variables: u64,
    /// Those of them that the backward pass reaches.
    pub reached: u64,
    /// The gradients of these.
    pub gradients: u64,
    /// The state of AdamW.
    pub optimizer: u64,
    /// The peak of the step without weights, tables, gradients and optimizer.
    pub activations: u64,
    /// The peak of the step.
    pub peak: u64,
}

impl Training {
    /// Whether the backward pass reaches every variable. If not, the figures
    /// are those of a step that does not train the model.
    pub fn is_whole(&self) -> bool {
        self.reached == self.variables
    }
}

/// Why there are no figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Whose matter it is.
    pub why: Why,
    /// One sentence.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The largest batch at which the model runs, where it is the batch that
    /// candle cannot run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_at: Option<u64>,
}

/// Whose matter a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// What was asked makes no sense: the configuration, the sizes.
    Question,
    /// The device is full.
    OutOfMemory,
    /// The model's code, or the instrument, did not do its work.
    NotMeasured,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_survives_the_wire() {
        let refusal = Refusal {
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
