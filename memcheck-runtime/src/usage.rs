//! The current memory usage, for test bodies and other programs.

use candle_core::Device;
use memcheck_core::measurement::quiet;
use memcheck_core::size::Size;
use memcheck_ledger as ledger;

use crate::device;

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

/// The current memory of `device`.
///
/// Outside a memory test the first call arms the probes. Blocks that were allocated before it are
/// not counted, and neither are their frees.
pub fn usage(device: &Device) -> Usage {
    let _quiet = quiet::enter();
    arm();
    let figures = ledger::snapshot(device::space(device));
    let (reserved, peak_reserved) = reserved(device);
    Usage { allocated: figures.live, peak_allocated: figures.peak, reserved, peak_reserved }
}

/// Emits a labeled line of usage as a `tracing` event of level INFO and target `memcheck`. It has
/// the figures as fields, in bytes, and a readable message.
///
/// A program without a subscriber shows no line.
pub fn log_usage(label: impl AsRef<str>, device: &Device) {
    log(label.as_ref(), device, &usage(device));
}

/// The event of [`log_usage`] for figures that are already known.
pub(crate) fn log(label: &str, device: &Device, usage: &Usage) {
    let _quiet = quiet::enter();
    tracing::info!(
        target: "memcheck",
        label,
        device = %device::space(device),
        allocated = usage.allocated,
        peak_allocated = usage.peak_allocated,
        reserved = usage.reserved,
        "{label}: {usage}",
    );
}

/// Returns unused memory of the driver's pool to the device (PyTorch's `empty_cache`). It waits for
/// `device` and then trims its default pool. On the CPU it has no effect, because the CPU has no
/// pool.
///
/// # Errors
/// If the driver refuses.
pub fn release_cached(device: &Device) -> candle_core::Result<()> {
    let _quiet = quiet::enter();
    device.synchronize()?;
    #[cfg(feature = "cuda")]
    crate::probe::pool::trim(device)?;
    Ok(())
}

/// Resets the peak that [`usage`] reports for `device` to the live bytes (PyTorch's
/// `reset_peak_memory_stats`). `peak_reserved` belongs to the driver and does not change.
///
/// In a memory test, the peak that is judged is still that of the whole body.
pub fn reset_peak(device: &Device) {
    let _quiet = quiet::enter();
    arm();
    ledger::reset_peak(device::space(device));
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
