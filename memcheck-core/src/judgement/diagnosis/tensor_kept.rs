//! Tensors that are kept, if no more specific rule fits.

use super::{count, rule};

rule!(
    "tensor-kept",
    "tensors of each iteration are kept",
    "find who holds them: a Vec that is pushed to, a map that is never cleared, a cycle of `Arc`s",
    |suspect, _| suspect.is_tensor() || !suspect.operation().is_empty(),
    |suspects, _| format!(
        "{} tensors survive{}",
        count(suspects),
        suspects
            .first()
            .and_then(|suspect| suspect.survivors.tensors.first())
            .map(|tensor| format!(", such as {tensor}"))
            .unwrap_or_default()
    )
);
