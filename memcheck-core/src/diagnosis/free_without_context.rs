//! Frees that the driver refused: their blocks are live for ever.

use super::rule;

rule!(
    "free-without-context",
    "the driver refused to free memory",
    "drop tensors on a thread on which the device is current, before the device itself goes",
    |_, evidence| evidence.measured.failed_frees > 0,
    |_, evidence| format!(
        "{} frees were refused by the driver, and their blocks are still live",
        evidence.measured.failed_frees
    )
);
