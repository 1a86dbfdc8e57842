//! The measurement of one request to a model. The survey of several versions of candle has it too.

use candle_core::Device;
use memcheck_core::wire::estimate::{Answer, Question};
use memcheck_estimate::answer;
use serde::{Deserialize, Serialize};

use super::needed;
use super::tiny::is_encoder;

/// The prompt of tiny models.
pub(crate) const PROMPT: u64 = 32;
const TOKENS: u64 = 8;

/// One request to a model. A figure that could not be measured is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OneRequest {
    pub(crate) name: String,
    pub(crate) weights: Option<u64>,
    pub(crate) tables: Option<u64>,
    pub(crate) prompt_peak: Option<u64>,
    /// The bytes of weights and of the closed formula.
    pub(crate) needed: Option<u64>,
    pub(crate) bytes_per_token: Option<u64>,
    /// The reason why a figure is missing.
    pub(crate) remark: String,
}

/// Measures a model of this name and architecture.
pub(crate) fn one_request(
    name: &str,
    model: &str,
    asked: &Question,
    device: &Device,
) -> OneRequest {
    answered(name, model, asked, answer(asked, device), device)
}

/// The same, with the answer to the question without generation.
pub(crate) fn answered(
    name: &str,
    model: &str,
    asked: &Question,
    first: Answer,
    device: &Device,
) -> OneRequest {
    let mut row = OneRequest { name: name.to_owned(), ..OneRequest::default() };
    let after = |tokens| match answer(&Question { generate: tokens, ..asked.clone() }, device) {
        Answer::Measured(estimate) => estimate.inference.map(|it| it.cache_after),
        Answer::Refused(_) => None,
    };
    match first {
        Answer::Measured(estimate) => {
            row.weights = Some(estimate.weights);
            row.tables = Some(estimate.tables);
            row.prompt_peak = estimate.inference.map(|inference| inference.prompt_peak);
            let element = if estimate.dtype == "f32" { 4 } else { 2 };
            let is_encoder = is_encoder(model);
            match needed::beyond_weights(model, is_encoder, &asked.config, asked.seq, element) {
                Ok(bytes) => row.needed = Some(estimate.weights + bytes),
                Err(reason) => row.remark = format!("no formula: {reason}"),
            }
            // The difference of two generations, because a prompt can leave more than its tokens.
            if !is_encoder {
                let cache = after(TOKENS).zip(after(2 * TOKENS));
                row.bytes_per_token = cache.map(|(one, two)| two.saturating_sub(one) / TOKENS);
            }
        }
        Answer::Refused(refusal) => row.remark = cause(&refusal.message),
    }
    row
}

/// The first words of an error, without the layouts of tensors.
pub(crate) fn cause(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    let line = line.strip_prefix("the model does not run: ").unwrap_or(line);
    let end = [" lstride", ", lhs:", " in broadcast", " lhs"]
        .iter()
        .filter_map(|end| line.find(end))
        .min();
    line[..end.unwrap_or(line.len())].replace('|', "/")
}
