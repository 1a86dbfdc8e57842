//! What is in use now: for a test body, and for any program.

use candle_core::Device;
use memcheck_core::quiet;
use memcheck_core::size::Size;

use crate::{device, ledger};

/// The memory of one device at one moment, in bytes.
///
/// `allocated` and `peak_allocated` are what the program asked for (PyTorch's
/// `memory_allocated` and `max_memory_allocated`), counted since the process
/// was armed: in a memory test, since its body started. `reserved` is what the
/// driver's pool holds for it (`memory_reserved`); `None` without a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Live bytes.
    pub allocated: u64,
    /// Highest number of live bytes so far.
    pub peak_allocated: u64,
    /// Bytes that the driver's pool holds.
    pub reserved: Option<u64>,
    /// Highest number of bytes that the driver's pool held so far.
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

/// The memory of `device` now.
///
/// Outside a memory test the probes are armed by the first call: what was
/// allocated before it is not known, and not counted when it is freed.
pub fn usage(device: &Device) -> Usage {
    let _quiet = quiet::enter();
    arm();
    let figures = ledger::snapshot(device::space(device));
    let (reserved, peak_reserved) = reserved(device);
    Usage { allocated: figures.live, peak_allocated: figures.peak, reserved, peak_reserved }
}

/// Emits a labelled line of usage as a `tracing` event of level INFO and target
/// `memcheck`: the figures as fields, in bytes, and a message for people.
///
/// Without a subscriber nothing is shown.
pub fn log_usage(label: impl AsRef<str>, device: &Device) {
    log(label.as_ref(), device, &usage(device));
}

/// The event of [`log_usage`], of figures that are known.
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

/// Gives memory that the driver's pool holds but nobody uses back to the
/// device (PyTorch's `empty_cache`): waits for `device`, then trims its
/// default pool. On the CPU there is no pool and nothing is done.
///
/// # Errors
/// When the driver refuses.
pub fn release_cached(device: &Device) -> candle_core::Result<()> {
    let _quiet = quiet::enter();
    device.synchronize()?;
    #[cfg(feature = "cuda")]
    crate::probe::pool::trim(device)?;
    Ok(())
}

/// Sets the peak that [`usage`] reports of `device` to what is live on it now
/// (PyTorch's `reset_peak_memory_stats`). `peak_reserved` is the driver's own.
///
/// In a memory test the peak that is judged stays that of the whole body.
pub fn reset_peak(device: &Device) {
    let _quiet = quiet::enter();
    arm();
    ledger::reset_peak(device::space(device));
}

/// Arms the probes of a program that nobody measures.
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
