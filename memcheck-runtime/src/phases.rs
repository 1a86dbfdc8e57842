//! What a program needs that measures phases of its own: for memcheck-estimate.

use candle_core::Device;
use memcheck_core::quiet;

use crate::{device, ledger};

/// The allocation that `device` refused last: the bytes asked for, and those
/// that were live.
pub fn refused(device: &Device) -> Option<(u64, u64)> {
    let _quiet = quiet::enter();
    let figures = ledger::snapshot(device::space(device));
    (figures.refused_bytes > 0).then_some((figures.refused_bytes, figures.refused_live))
}

/// Events that the ledger had no room for: figures are not exact where there are any.
pub fn lost_events() -> u64 {
    ledger::lost_events()
}
