//! Frees that the driver refused. Their blocks stay live until the process ends.

use super::{Evidence, Leftover, RemedyAt, Suspect, rule};
use crate::size::both;

rule!(
    "free-without-context",
    "the driver refused to free memory",
    "drop tensors before the device, on a thread where its CUDA context is current",
    // Blocks that the program still held at the end of the iterations do not count: if their frees
    // are refused later, something else kept them.
    |suspect, _| {
        let unfreed = suspect.survivors.held.unfreed;
        unfreed > 0 && 2 * unfreed >= suspect.survivors.group.bytes()
    },
    |suspects, _| {
        let sum =
            |bytes: fn(&Suspect<'_>) -> u64| -> u64 { suspects.iter().map(|of| bytes(of)).sum() };
        unfreed(sum(|of| of.survivors.held.unfreed), sum(|of| of.survivors.group.bytes()))
    };
    with_retained(retained),
    at_lines(RemedyAt::Allocating(|at| format!(
        "drop the tensors of {at} before the device, on a thread where its CUDA context is current"
    )))
);

fn unfreed(bytes: u64, all: u64) -> String {
    format!(
        "the driver refused to free {} of the {} that these call sites hold",
        both(bytes),
        both(all)
    )
}

/// All call sites together, because the bytes are known for the space only.
fn retained(leftover: &Leftover<'_>, evidence: &Evidence<'_>) -> Option<String> {
    let bytes = *evidence.attribution?.unfreed.get(&evidence.space)?;
    let all = leftover.all_bytes;
    (bytes.saturating_mul(2) >= all).then(|| unfreed(bytes, all))
}
