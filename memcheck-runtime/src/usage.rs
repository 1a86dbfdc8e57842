//! The current memory usage, for test bodies and other programs.

#[cfg(feature = "candle")]
mod of_device;

use std::collections::BTreeMap;

use memcheck_core::quiet;
use memcheck_core::size::Size;
use memcheck_core::space::Space;
use memcheck_ledger::{self as ledger, CounterSnapshot, block};

use crate::device::{self, Device};

#[cfg(feature = "candle")]
pub(crate) use of_device::log;
#[cfg(feature = "candle")]
pub use of_device::{log_usage, release_cached, reset_peak, usage};

/// The memory of one device at one moment, in bytes.
///
/// `allocated` and `peak_allocated` count the program's own requests (PyTorch's `memory_allocated`
/// and `max_memory_allocated`) since the probes were armed, or in a memory test since its body
/// began. `reserved` is the memory that the driver's pool holds for the program
/// (`memory_reserved`); `None` if the device has no pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Live bytes.
    pub allocated: u64,
    /// The highest number of live bytes so far.
    pub peak_allocated: u64,
    /// Bytes that the driver's pool holds.
    pub reserved: Option<u64>,
    /// The highest number of bytes that the driver's pool has held so far.
    pub peak_reserved: Option<u64>,
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "allocated {}, peak {}", Size(self.allocated), Size(self.peak_allocated))?;
        match self.reserved {
            Some(reserved) => write!(f, ", reserved {}", Size(reserved)),
            None => Ok(()),
        }
    }
}

/// The current memory of the host, and of each other memory in which the program has allocated, by
/// the name of the space: `host`, `cuda:0`, `cuda:0/pinned`. The driver's pool is not read.
///
/// Outside a memory test the first call arms the probes. Blocks that were allocated before it are
/// not counted, and neither are their frees.
pub fn usage_by_space() -> BTreeMap<String, Usage> {
    let _quiet = quiet::enter();
    arm();
    let used = |figures: &CounterSnapshot| figures.allocations > 0;
    block::spaces()
        .map(|space| (space, ledger::snapshot(space)))
        .filter(|(space, figures)| *space == Space::Host || used(figures))
        .map(|(space, figures)| {
            let (allocated, peak_allocated) = (figures.live, figures.peak);
            (space.to_string(), Usage { allocated, peak_allocated, ..Usage::default() })
        })
        .collect()
}

/// The current memory of `device`.
pub(crate) fn of(device: &Device) -> Usage {
    let _quiet = quiet::enter();
    arm();
    let figures = ledger::snapshot(device::space(device));
    let (reserved, peak_reserved) = reserved(device);
    Usage { allocated: figures.live, peak_allocated: figures.peak, reserved, peak_reserved }
}

/// Waits for `device` and trims its default pool.
pub(crate) fn release(device: &Device) -> device::Result<()> {
    let _quiet = quiet::enter();
    device::synchronize(device)?;
    #[cfg(feature = "cuda")]
    crate::probe::pool::trim(device)?;
    Ok(())
}

/// Arms the probes of a program that is not a memory test.
pub(crate) fn arm() {
    if !ledger::is_armed() {
        match ledger::prepare() {
            Ok(()) => ledger::arm(),
            Err(error) => tracing::warn!(target: "memcheck", "cannot count memory: {error}"),
        }
    }
}

#[cfg(feature = "cuda")]
fn reserved(device: &Device) -> (Option<u64>, Option<u64>) {
    match crate::probe::pool::read(device) {
        Ok(Some(pool)) => (Some(pool.reserved), Some(pool.peak_reserved)),
        Ok(None) | Err(_) => (None, None),
    }
}

#[cfg(not(feature = "cuda"))]
fn reserved(_device: &Device) -> (Option<u64>, Option<u64>) {
    (None, None)
}
