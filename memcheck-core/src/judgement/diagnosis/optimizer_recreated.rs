//! Optimizer state that is made again and kept.

use super::{count, rule};

rule!(
    "optimizer-recreated",
    "optimizer state is made again and kept",
    "make the optimizer once, before the loop, and drop an old one before a new one is made",
    |suspect, _| suspect.stack.is_optimizer() && !suspect.stack.is_backward(),
    |suspects, _| format!("{} surviving blocks were allocated by an optimizer", count(suspects))
);
