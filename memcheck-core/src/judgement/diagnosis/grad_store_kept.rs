//! Gradients that outlive their step.

use super::{RemedyAt, count, rule};
use crate::size::counted;

rule!(
    "grad-store-kept",
    "the gradients of each step are kept",
    "drop the `GradStore` at the end of the step; keep scalars of it, not the store",
    |suspect, _| suspect.stack.is_backward(),
    |suspects, _| format!(
        "{} allocated by `Tensor::backward`",
        counted(count(suspects), "surviving block was", "surviving blocks were")
    );
    at_lines(RemedyAt::Allocating(|at| format!(
        "drop the `GradStore` of {at} at the end of the step; keep scalars of it, not the store"
    )))
);
