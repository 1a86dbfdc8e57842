//! Batches of input that accumulate in a loader, or in a queue without a bound.

use super::{Evidence, Suspect, count, rule};
use crate::measurement::stack::{Owner, Passage};
use crate::size::counted;

const FROM_DATA: [&str; 5] = ["new", "from_vec", "from_slice", "from_iter", "from_raw_buffer"];
/// The input of tests and benchmarks, but also noise and positions.
const WITHOUT_DATA: [&str; 4] = ["arange", "arange_step", "rand", "randn"];
/// The code of these makes tensors from data that are not input: weights, masks, tables.
const OF_MODELS: [&str; 3] = ["candle_core::safetensors::", "candle_nn::", "candle_transformers::"];

rule!(
    "batches-kept",
    "batches of input are kept",
    "drop a batch after its step, and bound the queue of a prefetching loader",
    |suspect, evidence| {
        suspect.is_tensor()
            && has_several_elements(suspect)
            && !suspect.mostly(suspect.survivors.held.variables)
            && origin(suspect, evidence).is_some()
    },
    |suspects, evidence| format!(
        "{} {}",
        counted(count(suspects), "surviving tensor was made", "surviving tensors were made"),
        suspects.first().and_then(|suspect| origin(suspect, evidence)).unwrap_or_default()
    )
);

/// The origin of a batch, in words.
fn origin(suspect: &Suspect<'_>, evidence: &Evidence<'_>) -> Option<String> {
    let operation = suspect.operation();
    let is_one_of = |operations: &[&str]| operations.contains(&operation.as_str());
    if is_one_of(&FROM_DATA) && !OF_MODELS.iter().any(|module| suspect.stack.calls(module)) {
        return Some(format!("from data by `Tensor::{operation}`"));
    }
    if is_one_of(&WITHOUT_DATA) && evidence.owners.stores(suspect.stack, Passage::Channel) {
        return Some(format!("by `Tensor::{operation}`, and the same function sends to a channel"));
    }
    is_vec_of_program(suspect).then(|| "from a `Vec` of the program".to_owned())
}

/// On the host, `Tensor::from_vec` takes the block of the `Vec`.
fn is_vec_of_program(suspect: &Suspect<'_>) -> bool {
    let mut frames = suspect.stack.frames.iter();
    suspect.mostly(suspect.survivors.held.whole)
        && suspect.stack.user().is_some()
        && !frames.any(|frame| frame.owner() == Owner::Candle)
}

fn has_several_elements(suspect: &Suspect<'_>) -> bool {
    let largest = suspect.survivors.tensors.first();
    largest.is_some_and(|tensor| tensor.shape.iter().any(|&length| length > 1))
}
