//! Batches of input that accumulate in a loader, or in a queue without a bound.

use super::{count, rule};
use crate::size::counted;

const INPUTS: [&str; 9] = [
    "new",
    "from_vec",
    "from_slice",
    "from_iter",
    "arange",
    "arange_step",
    "rand",
    "randn",
    "from_raw_buffer",
];

rule!(
    "batches-kept",
    "batches of input are kept",
    "drop a batch after its step, and bound the queue of a prefetching loader",
    |suspect, _| { suspect.is_tensor() && INPUTS.contains(&suspect.operation().as_str()) },
    |suspects, _| format!(
        "{} created from data by `Tensor::{}`",
        counted(count(suspects), "surviving tensor was", "surviving tensors were"),
        suspects.first().map(|suspect| suspect.operation()).unwrap_or_default()
    )
);
