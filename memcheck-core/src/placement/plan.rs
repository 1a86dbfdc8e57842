//! Which modules go to which device, so that the fullest is as empty as can be.
//!
//! Each device takes a run of neighbours, in the order of the devices: then a
//! pass through the model changes device as seldom as possible. Over all ways to
//! cut, the best for the first devices and modules follows from the best for
//! fewer of them, so the result is exact.

use std::cmp::Ordering;
use std::ops::Range;

use serde::Serialize;

use super::{DeviceMap, Modules};
use crate::size::both;

/// What one device is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The modules, by their place; none where the device is not needed.
    pub modules: Range<usize>,
    /// The peak that they have there.
    pub peak: u64,
    /// What may be used of the device.
    pub usable: u64,
}

/// A share for each device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// By the ordinal of the device.
    pub shares: Vec<Share>,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Short {
    /// There are no devices, or no modules.
    #[error("there is nothing to place")]
    Nothing,
    /// The best that can be done is not good enough.
    #[error("there is too little memory: {}", .0.iter().map(missing).collect::<Vec<_>>().join("; "))]
    Memory(Vec<(usize, Share)>),
}

fn missing((device, share): &(usize, Share)) -> String {
    format!(
        "cuda:{device} would need {}, of {} that may be used {} are missing",
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

/// How full a device is: bytes, and bytes that may be used.
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

/// Places modules on devices of which this much may be used. The first device
/// has the first module.
///
/// # Errors
/// When the fullest device would hold more than may be used of it.
pub fn plan(modules: &Modules, usable: &[u64]) -> Result<Plan, Short> {
    let count = modules.modules.len();
    let (Some(&first), true) = (usable.first(), count > 0) else { return Err(Short::Nothing) };
    let of = |peak: u64, usable: u64| Fullness(peak, usable.max(1));
    // The fullest of the devices so far, by the number of modules placed, and
    // where the last of them begins.
    let mut best: Vec<Fullness> = (0..=count).map(|end| of(modules.peak(0, end), first)).collect();
    let mut begins: Vec<Vec<usize>> = vec![vec![0; count + 1]];
    for &usable in &usable[1..] {
        let choices = (0..=count).map(|end| {
            // From behind: as few modules on later devices as do no harm.
            let options = (1..=end)
                .rev()
                .map(|begin| (best[begin].max(of(modules.peak(begin, end), usable)), begin));
            options
                .reduce(|a, b| if b.0.compare(a.0) == Ordering::Less { b } else { a })
                .unwrap_or((best[0], 0))
        });
        let (fullest, begin): (Vec<Fullness>, Vec<usize>) = choices.unzip();
        best = fullest;
        begins.push(begin);
    }
    let mut shares: Vec<Share> = Vec::new();
    let mut end = count;
    for (begin, &usable) in begins.iter().zip(usable).rev() {
        let begin = begin[end];
        shares.push(Share { modules: begin..end, peak: modules.peak(begin, end), usable });
        end = begin;
    }
    shares.reverse();
    let over = shares.iter().enumerate().filter(|(_, share)| share.peak > share.usable);
    let over: Vec<(usize, Share)> = over.map(|(device, share)| (device, share.clone())).collect();
    if over.is_empty() { Ok(Plan { shares }) } else { Err(Short::Memory(over)) }
}
