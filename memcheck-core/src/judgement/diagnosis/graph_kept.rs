//! Tensors that are part of a graph and keep all tensors that they were computed from.

use super::{count, rule};

rule!(
    "graph-kept",
    "a tensor that is kept holds the graph that it was computed by",
    "`detach()` what is kept, or turn it into a number with `to_scalar`",
    |suspect, _| suspect.mostly(suspect.survivors.held.graph),
    |suspects, _| {
        let graph: u64 = suspects.iter().map(|suspect| suspect.survivors.held.graph).sum();
        format!(
            "{graph} of {} surviving tensors remember what they were computed from, for `backward`",
            count(suspects)
        )
    }
);
