//! The reason why there are no figures, on its way from the failing call to the answer.

use candle_core::Device;
use memcheck_core::judgement::fault;
use memcheck_core::size::both;
use memcheck_core::wire::estimate::{Answer, EstimateRefusal, Why};
use memcheck_runtime::__private as phases;

use crate::stage::FailureStage;

#[derive(Debug)]
pub(crate) struct Problem {
    refusal: EstimateRefusal,
    /// True if the model's code returned the error. Its cause can then be a full device.
    from_model: bool,
}

impl Problem {
    /// Creates the problem of an invalid question.
    pub(crate) fn invalid_question(message: impl Into<String>) -> Self {
        Self::new(Why::Question, message.into())
    }

    /// Creates the problem of a valid question that cannot be measured.
    pub(crate) fn not_measured(message: impl Into<String>) -> Self {
        Self::new(Why::NotMeasured, message.into())
    }

    /// Creates the problem of a panic in the model's code.
    pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a message");
        let problem = Self::new(Why::NotMeasured, format!("the model panicked: {text}"));
        Self { from_model: true, ..problem }
            .hint("check config.json for a size that is 0 or too small")
    }

    fn new(why: Why, message: String) -> Self {
        let refusal = EstimateRefusal { why, message, hint: None, runs_at: None };
        Self { refusal, from_model: false }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.refusal.hint = Some(hint.into());
        self
    }

    /// Replaces an error of the model by an out-of-memory answer, if the device has refused an
    /// allocation.
    pub(crate) fn or_out_of_memory(self, device: &Device, stage: FailureStage) -> Self {
        match phases::refused(device) {
            Some((bytes, live)) if self.from_model => Self::new(
                Why::OutOfMemory,
                format!(
                    "out of memory while {stage}: {} are live, and the model requests {} more",
                    both(live),
                    both(bytes)
                ),
            ),
            _ => self,
        }
    }

    /// Creates the problem of a model whose operations have no backward pass in candle.
    pub(crate) fn untrainable(error: candle_core::Error) -> Self {
        let problem = Self::from(error);
        let message = problem.refusal.message.replacen("does not run", "does not train", 1);
        Self { refusal: EstimateRefusal { message, ..problem.refusal }, ..problem }
    }

    /// Replaces an error of the driver about an invalid value by `why`, because the batch causes
    /// it. `most` is the largest batch that does not cause it.
    pub(crate) fn caused_by_batch(self, why: &str, most: u64) -> Self {
        if !self.refusal.message.contains("INVALID_VALUE") {
            return self;
        }
        let message = format!("the model does not run: {why}");
        let runs_at = Some(most).filter(|&batch| batch > 0);
        let refusal = EstimateRefusal { message, runs_at, ..self.refusal };
        Self { refusal, ..self }.hint(match runs_at {
            None => "use a smaller --seq".to_owned(),
            Some(batch) => format!("use --batch {batch} or a smaller --seq"),
        })
    }

    pub(crate) fn answer(self) -> Answer {
        Answer::Refused(self.refusal)
    }
}

impl From<candle_core::Error> for Problem {
    fn from(error: candle_core::Error) -> Self {
        // Only the first line is kept: candle can append a backtrace, which does not help the user.
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default().to_owned();
        let hint = if line.contains("f16/bf16") {
            Some("some models run only in half precision: use --dtype bf16".to_owned())
        } else if line.contains("dtype") || line.contains("kernel") {
            Some("some models run only in f32: use --dtype f32".to_owned())
        } else if let Some((fault, _)) = fault::of(&line) {
            Some(fault.remedy.to_owned())
        } else if line.contains("contiguous") {
            Some(
                "candle's code fails on this prompt: use --seq 1 to measure the weights".to_owned(),
            )
        } else {
            None
        };
        let mut problem = Self::new(Why::NotMeasured, format!("the model does not run: {line}"));
        problem.refusal.hint = hint;
        Self { from_model: true, ..problem }
    }
}
