//! Tensors that are part of a graph and keep all tensors that they were computed from.

use super::{RemedyAt, count, rule};
use crate::size::{counted, exact};

rule!(
    "graph-kept",
    "a kept tensor holds the graph that computed it",
    "in the line that keeps the tensor, and after the backward pass, keep its `detach()` or the number from `to_scalar`",
    |suspect, _| suspect.mostly(suspect.survivors.held.graph),
    |suspects, _| {
        let graph: u64 = suspects.iter().map(|suspect| suspect.survivors.held.graph).sum();
        let all = count(suspects);
        // Other tensors of the graph, such as its inputs, have call sites of their own.
        let part = if graph < all { format!("{} of ", exact(graph)) } else { String::new() };
        format!(
            "{part}{} {} inputs for `backward`",
            counted(all, "surviving tensor", "surviving tensors"),
            if graph == 1 { "holds its" } else { "hold their" }
        )
    };
    at_lines(RemedyAt::Keeping(|at| format!(
        "keep `detach()` of the result of {at}, or its number from `to_scalar`, after the backward pass"
    )))
);
