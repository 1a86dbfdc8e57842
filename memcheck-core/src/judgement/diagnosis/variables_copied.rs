//! Copies of variables or weights that accumulate, such as snapshots or averages.

use super::{count, rule};
use crate::size::counted;

rule!(
    "variables-copied",
    "copies of variables accumulate",
    "keep the last copy only, or write it to disk and drop it",
    |suspect, _| {
        let copies = ["copy", "force_contiguous", "detach", "from_tensor"];
        copies.contains(&suspect.operation().as_str())
            && suspect.survivors.held.views == 0
            && suspect.stack.calls("candle_core::tensor::Tensor::copy")
    },
    |suspects, _| format!(
        "{} of `Tensor::copy`",
        counted(count(suspects), "surviving block is a result", "surviving blocks are results")
    )
);
