//! Gradients that outlive their step.

use super::{count, rule};

rule!(
    "grad-store-kept",
    "the gradients of each step are kept",
    "drop the `GradStore` at the end of the step; keep numbers of it, not the store",
    |suspect, _| suspect.stack.is_backward(),
    |suspects, _| format!(
        "{} surviving blocks were allocated by `Tensor::backward`",
        count(suspects)
    )
);
