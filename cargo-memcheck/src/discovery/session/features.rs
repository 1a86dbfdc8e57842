//! The lines of a run's header about features that only some of its devices have.

use crate::build::leg::Leg;
use crate::build::workspace::{DeviceFeatures, TestPackage};

/// A line for each list, with the devices that have it.
pub(super) fn lines(legs: &[Leg], packages: &[TestPackage]) -> Vec<String> {
    let mut found: Vec<(String, &'static str, Vec<String>)> = Vec::new();
    for leg in legs {
        let of_leg = packages.iter().filter_map(|package| package.features.get(&leg.kind));
        let Some(DeviceFeatures { by, .. }) = of_leg.clone().next() else { continue };
        let mut all: Vec<String> =
            packages.iter().flat_map(|package| package.own_features(leg.kind)).collect();
        all.sort();
        all.dedup();
        let features = all.join(", ");
        match found.iter_mut().find(|(known, why, _)| *known == features && why == by) {
            Some((_, _, devices)) => devices.push(leg.name()),
            None => found.push((features, *by, vec![leg.name()])),
        }
    }
    let line = |(features, by, devices): (String, &str, Vec<String>)| {
        format!("features: {features} on {} ({by})", devices.join(" and "))
    };
    found.into_iter().map(line).collect()
}
