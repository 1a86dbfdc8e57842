//! Copies of variables or weights that accumulate, such as snapshots or averages.

use super::{Evidence, RemedyAt, Suspect, count, rule};
use crate::size::counted;

rule!(
    "variables-copied",
    "copies of variables accumulate",
    "keep the last copy only, or write it to disk and drop it",
    // A copy has its source as the input of its graph only if that is a variable, or computed from
    // one. The copy of another tensor has no graph.
    |suspect, _| {
        let copies = ["copy", "force_contiguous", "detach", "from_tensor"];
        let held = &suspect.survivors.held;
        copies.contains(&suspect.operation().as_str())
            && held.views == 0
            && suspect.mostly(held.graph)
            && suspect.stack.calls("candle_core::tensor::Tensor::copy")
    },
    |suspects, _| format!(
        "{} of `Tensor::copy` of a variable",
        counted(count(suspects), "surviving block is a result", "surviving blocks are results")
    );
    with_condition(copies_variables),
    at_lines(RemedyAt::Allocating(|at| format!(
        "keep the last copy of {at} only, or write it to disk and drop it"
    )))
);

/// The graph of a copy holds tensors of the iteration if its source was computed in it.
fn copies_variables(copies: &[&Suspect<'_>], evidence: &Evidence<'_>) -> bool {
    let mut computed = evidence.growing().filter(|suspect| suspect.survivors.held.graph > 0);
    computed.all(|suspect| copies.iter().any(|copy| std::ptr::eq(*copy, suspect)))
}
