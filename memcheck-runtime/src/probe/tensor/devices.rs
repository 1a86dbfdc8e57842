//! The devices of candle that tensors were seen on.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use candle_core::Tensor;

#[cfg(feature = "cuda")]
use super::layout;

/// In the order in which tensors on them were first seen: number and iteration.
static DEVICES: [(AtomicU64, AtomicU64); 256] =
    [const { (AtomicU64::new(0), AtomicU64::new(0)) }; 256];

/// Notes the device of a tensor.
#[cfg(feature = "cuda")]
pub(super) fn note(tensor: &Tensor) {
    let candle_core::Device::Cuda(cuda) = tensor.device() else { return };
    // SAFETY: `DeviceId` is one number that is drawn from a counter.
    let number = unsafe { layout::word_of(&cuda.id()) };
    let Some(number) = number.map(|number| number + 1) else { return };
    for (known, birth) in &DEVICES {
        // PERF: most tensors are on a device that is known.
        if known.load(Relaxed) == number {
            return;
        }
        match known.compare_exchange(0, number, Relaxed, Relaxed) {
            Ok(_) => return birth.store(crate::ledger::iteration().into(), Relaxed),
            Err(other) if other == number => return,
            Err(_) => {}
        }
    }
}

#[cfg(not(feature = "cuda"))]
pub(super) fn note(_tensor: &Tensor) {}

/// Devices on which tensors were first seen in iteration `first` or later.
pub(crate) fn since(first: u32) -> u64 {
    let opened = DEVICES.iter().filter(|(number, birth)| {
        number.load(Relaxed) != 0 && birth.load(Relaxed) >= u64::from(first)
    });
    opened.count() as u64
}
