//! A device that is opened again in every iteration and kept.

use super::{Evidence, rule};
use crate::measurement::attribution::MOST_DEVICES;
use crate::size::counted;

rule!(
    "device-recreated",
    "a device is opened repeatedly",
    "open the device once and pass it on: each new device has its own handles and modules",
    |_, evidence| {
        let opened = opened_devices(evidence);
        // In a long run the table of devices is full before the iterations end.
        let iterations = u64::from(evidence.attributed).min(MOST_DEVICES as u64);
        opened >= 2 && 2 * opened >= iterations
    },
    |_, evidence| format!(
        "tensors of {} new devices were seen in {}",
        opened_devices(evidence),
        counted(u64::from(evidence.attributed), "iteration", "iterations")
    )
);

fn opened_devices(evidence: &Evidence<'_>) -> u64 {
    let devices = evidence.attribution.map(|attribution| &attribution.devices);
    devices.and_then(|devices| devices.get(&evidence.space)).copied().unwrap_or(0)
}
