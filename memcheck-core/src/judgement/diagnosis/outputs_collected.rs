//! Attention weights or hidden states that are collected layer by layer.

use super::{count, rule};

rule!(
    "outputs-collected",
    "attention weights or hidden states are collected",
    "switch their collection off (`output_attentions`, `output_hidden_states`), or keep a \
     reduced copy on the host",
    |suspect, _| {
        let attention =
            suspect.operation().starts_with("softmax") || suspect.mentions(&["attn", "attention"]);
        let layers = suspect.survivors.group.births.iter().any(|&births| births > 1)
            && suspect.mentions(&["layer", "block", "hidden"]);
        suspect.is_tensor() && (attention || layers)
    },
    |suspects, _| format!(
        "{} surviving tensors are outputs of layers of the model{}",
        count(suspects),
        suspects
            .first()
            .and_then(|suspect| suspect.survivors.tensors.first())
            .map(|tensor| format!(", such as {tensor}"))
            .unwrap_or_default()
    )
);
