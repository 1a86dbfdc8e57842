//! Batches of input that accumulate in a loader, or in a queue without a bound.

use super::{RemedyAt, Suspect, count, rule};
use crate::measurement::stack::Owner;
use crate::size::counted;

const FROM_DATA: [&str; 5] = ["new", "from_vec", "from_slice", "from_iter", "from_raw_buffer"];
/// The code of these makes tensors from data that are not input: weights, masks, tables.
const OF_MODELS: [&str; 3] = ["candle_core::safetensors::", "candle_nn::", "candle_transformers::"];

rule!(
    "batches-kept",
    "batches of input are kept",
    "drop a batch after its step, and bound the queue of a prefetching loader",
    |suspect, _| {
        suspect.is_tensor()
            && has_several_elements(suspect)
            && !suspect.mostly(suspect.survivors.held.variables)
            && origin(suspect).is_some()
    },
    |suspects, _| format!(
        "{} from {}",
        counted(count(suspects), "surviving tensor was made", "surviving tensors were made"),
        suspects.first().and_then(|suspect| origin(suspect)).unwrap_or_default()
    );
    at_lines(RemedyAt::Allocating(|at| format!(
        "drop a batch of {at} after its step, and bound the queue of a prefetching loader"
    )))
);

/// The origin of the data of a batch, in words. Random numbers are not data.
fn origin(suspect: &Suspect<'_>) -> Option<String> {
    let operation = suspect.operation();
    let is_of_model = || OF_MODELS.iter().any(|module| suspect.stack.calls(module));
    if FROM_DATA.contains(&operation.as_str()) && !is_of_model() {
        return Some(format!("data by `Tensor::{operation}`"));
    }
    is_vec_of_program(suspect).then(|| "a `Vec` of the program".to_owned())
}

/// On the host, `Tensor::from_vec` takes the block of the `Vec`.
fn is_vec_of_program(suspect: &Suspect<'_>) -> bool {
    let mut frames = suspect.stack.frames.iter();
    suspect.mostly(suspect.survivors.held.whole)
        && suspect.stack.user().is_some()
        && !frames.any(|frame| frame.owner() == Owner::Candle)
}

fn has_several_elements(suspect: &Suspect<'_>) -> bool {
    let mut tensors = suspect.survivors.tensors.iter();
    tensors.any(|tensor| tensor.shape.iter().any(|&length| length > 1))
}
