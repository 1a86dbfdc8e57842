//! Functions for a program that measures its own phases; memcheck-estimate uses them.

use std::panic::AssertUnwindSafe;

use candle_core::{Device, Result};
use memcheck_core::quiet;
use memcheck_ledger::{self as ledger, block};

use crate::device;
use crate::probe::card::{self, InstalledCard};
use crate::refusal;

/// The last allocation that `device` refused: the requested bytes, and the bytes that were live at
/// that moment. `None` if it has refused none.
pub fn refused(device: &Device) -> Option<(u64, u64)> {
    let _quiet = quiet::enter();
    let figures = ledger::snapshot(device::space(device));
    (figures.refused_bytes > 0).then_some((figures.refused_bytes, figures.refused_live))
}

/// Runs `work` and refuses its device allocation with this number, counted from 1. Returns the
/// result of `work`, which is an error if it panicked, and whether it made that allocation. Calls
/// must not overlap.
pub fn refusing<R>(number: u64, work: impl FnOnce() -> R) -> (std::thread::Result<R>, bool) {
    refusal::begin(Some(number));
    let result = std::panic::catch_unwind(AssertUnwindSafe(work));
    let is_reached = refusal::end();
    // It must not look like the reason for later errors.
    block::spaces().for_each(ledger::forget_refusal);
    (result, is_reached)
}

/// The card of a device; `None` if the device is not a GPU.
///
/// # Errors
/// If the driver returns an error.
pub fn card_of(device: &Device) -> Result<Option<InstalledCard>> {
    card::card(device)
}

/// The number of events for which the ledger had no room. If it is not 0, the figures are not
/// exact.
pub fn lost_events() -> u64 {
    ledger::lost_events()
}
