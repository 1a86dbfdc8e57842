//! A device that is opened again in every iteration and kept.

use super::{Evidence, rule};

rule!(
    "device-recreated",
    "a device is opened again and again",
    "open the device once and pass it on: every new one brings its own handles and modules",
    |_, evidence| {
        let opened = opened(evidence);
        opened >= 2 && 2 * opened >= u64::from(evidence.iterations)
    },
    |_, evidence| format!(
        "tensors of {} new devices were seen in {} iterations",
        opened(evidence),
        evidence.iterations
    )
);

/// The number of devices that measured iterations opened on the GPU of this space.
fn opened(evidence: &Evidence<'_>) -> u64 {
    let devices = evidence.attribution.map(|attribution| &attribution.devices);
    devices.and_then(|devices| devices.get(&evidence.space)).copied().unwrap_or(0)
}
