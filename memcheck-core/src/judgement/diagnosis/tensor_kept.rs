//! Tensors that are kept, if no more specific rule fits.

use super::{RemedyAt, count, rule};
use crate::size::counted;

rule!(
    "tensor-kept",
    "tensors of each iteration are kept",
    "find the owner: a `Vec` that grows, a map that is never cleared, a cycle of `Arc`s, a channel \
     that is not read, a task or thread that does not end, `mem::forget` or `Box::leak`",
    |suspect, _| suspect.is_tensor() || !suspect.operation().is_empty(),
    |suspects, evidence| format!(
        "{}{}{}",
        counted(count(suspects), "tensor survives", "tensors survive"),
        suspects
            .first()
            .and_then(|suspect| suspect.survivors.tensors.first())
            .map(|tensor| format!(", such as {tensor}"))
            .unwrap_or_default(),
        evidence.owners.question(suspects)
    );
    at_lines(RemedyAt::Keeping(|at| format!(
        "remove entries from the list at {at}, or store a number instead of the tensor"
    )))
);
