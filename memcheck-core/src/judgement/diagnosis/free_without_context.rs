//! Frees that the driver refused. Their blocks stay live until the process ends.

use super::{Evidence, Leftover, count, rule};
use crate::size::counted;

rule!(
    "free-without-context",
    "the driver refused to free memory",
    "drop tensors before the device, on a thread where its CUDA context is current",
    // One refused free explains one block. It must not explain all live blocks of a call site, and
    // none that a tensor still held at the end of the iterations: its free was refused later.
    |suspect, evidence| {
        suspect.mostly(evidence.measured.failed_frees.min(suspect.without_tensor()))
    },
    |_, evidence| refused_frees(evidence);
    with_condition(|suspects, evidence| 2 * evidence.measured.failed_frees >= count(suspects)),
    with_retained(retained)
);

fn refused_frees(evidence: &Evidence<'_>) -> String {
    let refused = evidence.measured.failed_frees;
    format!(
        "the driver refused {}, so {} live",
        counted(refused, "free", "frees"),
        counted(refused, "block is still", "blocks are still")
    )
}

/// All of the blocks together must not be more than the refused frees explain.
fn retained(leftover: &Leftover<'_>, evidence: &Evidence<'_>) -> Option<String> {
    let refused = evidence.measured.failed_frees;
    (refused > 0 && refused.saturating_mul(2) >= leftover.all_blocks)
        .then(|| refused_frees(evidence))
}
