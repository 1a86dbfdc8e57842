//! The candle devices on which tensors were found.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use candle_core::Tensor;
use memcheck_core::measurement::attribution::MOST_DEVICES;
use memcheck_core::space::Space;
#[cfg(feature = "cuda")]
use memcheck_ledger as ledger;
use memcheck_ledger::block;

#[cfg(feature = "cuda")]
use super::layout;

const ITERATION_BITS: u32 = u32::BITS;

/// Devices in the order in which they were first found: the number of the device, and the iteration
/// in the low half of a word whose high half is the index of its space.
static DEVICES: [(AtomicU64, AtomicU64); MOST_DEVICES] =
    [const { (AtomicU64::new(0), AtomicU64::new(0)) }; MOST_DEVICES];

/// Records the device of a tensor, and returns its number in [`DEVICES`] if there is room for it.
#[cfg(feature = "cuda")]
pub(super) fn record(tensor: &Tensor) -> Option<u16> {
    let candle_core::Device::Cuda(cuda) = tensor.device() else { return None };
    // SAFETY: `DeviceId` is one number that candle takes from a counter.
    let number = unsafe { layout::word_of(&cuda.id()) };
    // 0 is an empty place, and candle's first device can have that number.
    let number = number.map(|number| number + 1)?;
    for (at, (known, birth)) in (0..).zip(&DEVICES) {
        // PERF: most tensors are on a device that is already known.
        if known.load(Relaxed) == number {
            return Some(at);
        }
        match known.compare_exchange(0, number, Relaxed, Relaxed) {
            Ok(_) => {
                let space = block::index(crate::device::space(tensor.device())).unwrap_or(0);
                let seen = u64::from(ledger::iteration()) | (space as u64) << ITERATION_BITS;
                birth.store(seen, Relaxed);
                return Some(at);
            }
            Err(other) if other == number => return Some(at),
            Err(_) => {}
        }
    }
    None
}

#[cfg(not(feature = "cuda"))]
pub(super) fn record(_tensor: &Tensor) -> Option<u16> {
    None
}

/// True if a tensor of the device was first found in iteration `first` or later.
pub(super) fn is_new(number: u16, first: u32) -> bool {
    let device = DEVICES.get(usize::from(number));
    device.is_some_and(|(_, seen)| seen.load(Relaxed) as u32 >= first)
}

/// The number of devices on which tensors were first found in iteration `first` or later, by the
/// space of their memory.
pub(crate) fn since(first: u32) -> BTreeMap<Space, u64> {
    let mut opened = BTreeMap::new();
    for (number, seen) in &DEVICES {
        let seen = seen.load(Relaxed);
        if number.load(Relaxed) != 0 && seen as u32 >= first {
            let space = block::space((seen >> ITERATION_BITS) as usize);
            *opened.entry(space).or_default() += 1;
        }
    }
    opened
}
