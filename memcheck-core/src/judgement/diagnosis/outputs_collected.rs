//! Attention weights that are collected layer by layer.

use super::{RemedyAt, Suspect, count, rule};
use crate::size::counted;

rule!(
    "outputs-collected",
    "attention weights are collected",
    "disable their collection (`output_attentions`), or keep a reduced copy on the host",
    |suspect, _| {
        let of_layers = suspect.survivors.group.births.iter().any(|&births| births > 1);
        // A softmax over classes or over an image is neither in layers nor in attention.
        suspect.operation().starts_with("softmax")
            && has_weights(suspect)
            && (of_layers || suspect.mentions(&["attn", "attention"]))
    },
    |suspects, _| format!(
        "{} of attention weights{}",
        counted(
            count(suspects),
            "surviving tensor is a softmax",
            "surviving tensors are softmaxes"
        ),
        suspects
            .first()
            .and_then(|suspect| suspect.survivors.tensors.first())
            .map(|tensor| format!(", such as {tensor}"))
            .unwrap_or_default()
    );
    at_lines(RemedyAt::Allocating(|at| format!(
        "do not collect the weights of {at} (`output_attentions`), or keep a reduced copy on the host"
    )))
);

/// Weights are `[heads, queries, keys]`, with a batch before them or not. There are as many keys as
/// queries or, with a cache, one query.
fn has_weights(suspect: &Suspect<'_>) -> bool {
    suspect.survivors.tensors.first().is_some_and(|tensor| match tensor.shape.as_slice() {
        [_, queries, keys] => queries == keys,
        [_, _, queries, keys] => queries == keys || *queries == 1,
        _ => false,
    })
}
