//! Assigns modules to devices so that the fullest device is as empty as possible. Each gets a run
//! of neighbors, so that a pass rarely changes device. The result is exact: dynamic programming
//! over all ways to cut.

use std::cmp::Ordering;
use std::ops::Range;

use serde::Serialize;

use super::{DeviceMap, Modules};
use crate::size::both;

/// The share of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceShare {
    /// The modules as a range of indices; empty if the device is not needed.
    pub modules: Range<usize>,
    /// Their peak on this device.
    pub peak: u64,
    /// The bytes of the device that may be used.
    pub usable: u64,
}

/// A share for each device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The shares in the order of the devices' ordinals.
    pub shares: Vec<DeviceShare>,
}

/// The reason why the modules cannot be assigned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Short {
    /// The list of devices or the list of modules is empty.
    #[error("the list of devices or of modules is empty")]
    Nothing,
    /// They do not fit even in the best assignment; the devices that are too small.
    #[error("the devices have too little memory: {}", .0.iter().map(shortage).collect::<Vec<_>>().join("; "))]
    Memory(Vec<(usize, DeviceShare)>),
}

fn shortage((device, share): &(usize, DeviceShare)) -> String {
    format!(
        "cuda:{device} needs {} and may use {}, {} are missing",
        both(share.peak),
        both(share.usable),
        both(share.peak.saturating_sub(share.usable))
    )
}

impl Plan {
    /// The device of each module.
    pub fn device_map(&self, modules: &Modules) -> DeviceMap {
        let devices = self.shares.iter().enumerate();
        let places = devices
            .flat_map(|(device, share)| share.modules.clone().map(move |module| (module, device)));
        let named = |(module, device): (usize, usize)| {
            modules.modules.get(module).map(|module| (module.name.clone(), device))
        };
        DeviceMap(places.filter_map(named).collect())
    }
}

#[derive(Debug, Clone, Copy)]
struct Fullness(u64, u64);

impl Fullness {
    fn compare(self, other: Self) -> Ordering {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.0, other.1).cmp(&product(other.0, self.1))
    }

    fn max(self, other: Self) -> Self {
        if self.compare(other) == Ordering::Less { other } else { self }
    }
}

/// Assigns modules to devices with these `usable` bytes. The first device must get the first
/// module; later ones can stay empty. An error lists what the best assignment lacks.
pub fn plan(modules: &Modules, usable: &[u64]) -> Result<Plan, Short> {
    let count = modules.modules.len();
    let (Some(&first), true) = (usable.first(), count > 0) else { return Err(Short::Nothing) };
    let fullness = |peak: u64, usable: u64| Fullness(peak, usable.max(1));
    // For each number of modules: the fullest device so far, and the last one's first module.
    let mut best: Vec<Fullness> =
        (0..=count).map(|end| fullness(modules.peak(0, end), first)).collect();
    let mut begins: Vec<Vec<usize>> = vec![vec![0; count + 1]];
    for &usable in &usable[1..] {
        let choices = (0..=count).map(|end| {
            // From the highest, so that of equal options the fewest modules are on later devices.
            let options = (1..=end)
                .rev()
                .map(|begin| (best[begin].max(fullness(modules.peak(begin, end), usable)), begin));
            options
                .reduce(|a, b| if b.0.compare(a.0) == Ordering::Less { b } else { a })
                .unwrap_or((best[0], 0))
        });
        let (fullest, begin): (Vec<Fullness>, Vec<usize>) = choices.unzip();
        best = fullest;
        begins.push(begin);
    }
    let mut shares: Vec<DeviceShare> = Vec::new();
    let mut end = count;
    for (begin, &usable) in begins.iter().zip(usable).rev() {
        let begin = begin[end];
        shares.push(DeviceShare { modules: begin..end, peak: modules.peak(begin, end), usable });
        end = begin;
    }
    shares.reverse();
    let over = shares.iter().enumerate().filter(|(_, share)| share.peak > share.usable);
    let over: Vec<(usize, DeviceShare)> =
        over.map(|(device, share)| (device, share.clone())).collect();
    if over.is_empty() { Ok(Plan { shares }) } else { Err(Short::Memory(over)) }
}
