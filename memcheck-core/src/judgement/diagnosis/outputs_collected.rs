//! Attention weights or hidden states that are collected layer by layer.

use super::{count, rule};
use crate::size::counted;

rule!(
    "outputs-collected",
    "attention weights or hidden states are collected",
    "disable their collection (`output_attentions`, `output_hidden_states`), or keep a \
     reduced copy on the host",
    |suspect, _| {
        let attention =
            suspect.operation().starts_with("softmax") || suspect.mentions(&["attn", "attention"]);
        let layers = suspect.survivors.group.births.iter().any(|&births| births > 1)
            && suspect.mentions(&["layer", "block", "hidden"]);
        suspect.is_tensor() && (attention || layers)
    },
    |suspects, _| format!(
        "{} of the model's layers{}",
        counted(count(suspects), "surviving tensor is an output", "surviving tensors are outputs"),
        suspects
            .first()
            .and_then(|suspect| suspect.survivors.tensors.first())
            .map(|tensor| format!(", such as {tensor}"))
            .unwrap_or_default()
    )
);
