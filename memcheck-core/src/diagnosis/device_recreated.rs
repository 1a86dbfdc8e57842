//! A device that is opened anew in every iteration and kept.

use super::rule;

rule!(
    "device-recreated",
    "a device is opened again and again",
    "open the device once and pass it on: every new one brings its own handles and modules",
    |_, evidence| {
        let opened = evidence.attribution.devices_opened;
        opened >= 2 && 2 * opened >= u64::from(evidence.iterations)
    },
    |_, evidence| format!(
        "tensors of {} new devices were seen in {} iterations",
        evidence.attribution.devices_opened, evidence.iterations
    )
);
