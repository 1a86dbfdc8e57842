//! Optimizer state that is created again and kept.

use super::{count, rule};
use crate::size::counted;

rule!(
    "optimizer-recreated",
    "optimizer state is created again and kept",
    "create the optimizer once, before the loop; drop an old one before you create a new one",
    |suspect, _| suspect.stack.is_optimizer() && !suspect.stack.is_backward(),
    |suspects, _| format!(
        "{} allocated by an optimizer",
        counted(count(suspects), "surviving block was", "surviving blocks were")
    )
);
