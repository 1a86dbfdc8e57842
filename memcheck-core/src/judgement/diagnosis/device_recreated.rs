//! A device that is opened again in every iteration and kept.

use super::{Evidence, Suspect, rule};
use crate::measurement::attribution::MOST_DEVICES;
use crate::size::counted;

rule!(
    "device-recreated",
    "a device is opened repeatedly",
    "open the device once and pass it on: each new device has its own handles and modules",
    // A device that is opened and dropped does not explain memory on another one.
    |suspect, evidence| {
        is_repeated(opened_devices(evidence), u64::from(evidence.attributed))
            && (is_on_new_devices(suspect) || suspect.stack.is_workspace())
    },
    |_, evidence| format!(
        "tensors of {} new devices were seen in {}",
        opened_devices(evidence),
        counted(u64::from(evidence.attributed), "iteration", "iterations")
    )
);

fn is_on_new_devices(suspect: &Suspect<'_>) -> bool {
    let births = suspect.survivors.group.births.iter().filter(|&&births| births > 0).count();
    is_repeated(suspect.survivors.held.new_devices, births as u64)
}

/// True for a device in at least every second of these iterations.
fn is_repeated(devices: u64, iterations: u64) -> bool {
    // In a long run the table of devices is full before the iterations end.
    devices >= 2 && 2 * devices >= iterations.min(MOST_DEVICES as u64)
}

fn opened_devices(evidence: &Evidence<'_>) -> u64 {
    let devices = evidence.attribution.map(|attribution| &attribution.devices);
    devices.and_then(|devices| devices.get(&evidence.space)).copied().unwrap_or(0)
}
