//! Frees that the driver refused: their blocks are live for ever.

use super::{Evidence, Leftover, count, rule};

rule!(
    "free-without-context",
    "the driver refused to free memory",
    "drop tensors on a thread on which the device is current, before the device itself goes",
    // One that was refused explains one block, not all that are live.
    |suspect, evidence| suspect.mostly(evidence.measured.failed_frees),
    |_, evidence| seen(evidence);
    if_together(|suspects, evidence| 2 * evidence.measured.failed_frees >= count(suspects)),
    knows_retained(retained)
);

fn seen(evidence: &Evidence<'_>) -> String {
    format!(
        "{} frees were refused by the driver, and their blocks are still live",
        evidence.measured.failed_frees
    )
}

fn retained(leftover: &Leftover<'_>, evidence: &Evidence<'_>) -> Option<String> {
    let refused = evidence.measured.failed_frees;
    (refused > 0 && 2 * refused >= leftover.holder.count).then(|| seen(evidence))
}
