//! Measures what a loaded model keeps over requests: prompts at the first position, on one model.

use candle_core::{DType, Device, Tensor};
use memcheck_core::wire::estimate::Question;
use memcheck_runtime::usage;

use crate::measure::Loaded;
use crate::problem::Problem;
use crate::question;

/// What happens to the model after each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// The model goes on as it is.
    Nothing,
    /// The model is cleared in the way that candle has for it.
    Clear,
}

/// The memory of a model over requests, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requests {
    /// The bytes that the model keeps after each request, and after it was cleared, without its
    /// weights and tables.
    pub kept: Vec<u64>,
    /// The error with which the model refused the request after those.
    pub refused: Option<String>,
    /// The bytes that are live when the model is dropped.
    pub left: u64,
}

pub(crate) fn measure(
    question: &Question,
    lengths: &[usize],
    between: Between,
    device: &Device,
) -> Result<Requests, Problem> {
    let checked = question::check(question)?;
    let before = usage(device).allocated;
    let mut requests = Requests { kept: Vec::with_capacity(lengths.len()), refused: None, left: 0 };
    let mut loaded = Loaded::load(&checked, false, device)?;
    let (held, _) = loaded.usage(device);
    for &length in lengths {
        let ids = Tensor::zeros((checked.batch, length), DType::U32, device)?;
        if let Err(error) = loaded.model.prompt(&ids) {
            requests.refused = Some(error.to_string());
            break;
        }
        drop(ids);
        if between == Between::Clear && !loaded.model.clear()? {
            return Err(Problem::not_measured("candle has no function that clears the model"));
        }
        requests.kept.push(loaded.usage(device).0.saturating_sub(held));
    }
    drop(loaded);
    requests.left = usage(device).allocated.saturating_sub(before);
    Ok(requests)
}
