//! The same for one device of candle.

use candle_core::Device;
use memcheck_core::quiet;
use memcheck_ledger as ledger;

use super::{Usage, arm};
use crate::device;

/// The current memory of `device`.
///
/// Outside a memory test the first call arms the probes. Blocks that were allocated before it are
/// not counted, and neither are their frees.
pub fn usage(device: &Device) -> Usage {
    super::of(device)
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
    super::release(device)
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
