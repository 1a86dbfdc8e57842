//! Functions for a program that measures its own phases; memcheck-estimate uses them.

use candle_core::Device;
use memcheck_core::measurement::quiet;
use memcheck_ledger as ledger;

use crate::device;

/// The last allocation that `device` refused: the requested bytes, and the bytes that were live at
/// that moment. `None` if it has refused none.
pub fn refused(device: &Device) -> Option<(u64, u64)> {
    let _quiet = quiet::enter();
    let figures = ledger::snapshot(device::space(device));
    (figures.refused_bytes > 0).then_some((figures.refused_bytes, figures.refused_live))
}

/// The number of events for which the ledger had no room. If it is not 0, the figures are not
/// exact.
pub fn lost_events() -> u64 {
    ledger::lost_events()
}
