//! Frees that the driver refused. Their blocks stay live until the process ends.

use super::{Evidence, Leftover, count, rule};
use crate::size::counted;

rule!(
    "free-without-context",
    "the driver refused to free memory",
    "drop tensors on a thread on which the device is current, before the device itself goes",
    // One refused free explains one block. It must not explain all live blocks of a call site.
    |suspect, evidence| suspect.mostly(evidence.measured.failed_frees),
    |_, evidence| seen(evidence);
    if_together(|suspects, evidence| 2 * evidence.measured.failed_frees >= count(suspects)),
    knows_retained(retained)
);

fn seen(evidence: &Evidence<'_>) -> String {
    format!(
        "{} refused by the driver and left a block that is still live",
        counted(evidence.measured.failed_frees, "free was", "frees were each")
    )
}

fn retained(leftover: &Leftover<'_>, evidence: &Evidence<'_>) -> Option<String> {
    let refused = evidence.measured.failed_frees;
    (refused > 0 && 2 * refused >= leftover.holder.count).then(|| seen(evidence))
}
