//! Frees that the driver refused: their blocks are live for ever.

use super::{Evidence, Leftover, rule};

rule!(
    "free-without-context",
    "the driver refused to free memory",
    "drop tensors on a thread on which the device is current, before the device itself goes",
    |suspect, evidence| {
        let refused = evidence.measured.failed_frees;
        // One that was refused explains one block, not all that are live.
        suspect.mostly(refused) && 2 * refused >= accused(evidence)
    },
    |_, evidence| seen(evidence);
    knows_retained(retained)
);

fn seen(evidence: &Evidence<'_>) -> String {
    format!(
        "{} frees were refused by the driver, and their blocks are still live",
        evidence.measured.failed_frees
    )
}

/// Blocks that the growth has left behind, at all places.
fn accused(evidence: &Evidence<'_>) -> u64 {
    evidence.accused().iter().map(|(suspect, _)| suspect.survivors.group.count()).sum()
}

fn retained(leftover: &Leftover<'_>, evidence: &Evidence<'_>) -> Option<String> {
    let refused = evidence.measured.failed_frees;
    (refused > 0 && 2 * refused >= leftover.holder.count).then(|| seen(evidence))
}
