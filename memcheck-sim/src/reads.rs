//! Reports reads of unknown values to an observer, while the program's call is still on the stack.

use std::sync::OnceLock;

use crate::machine::Machine;

static OBSERVER: OnceLock<fn(u64)> = OnceLock::new();

/// Sets the function that is called for each read of unknown values by the program, with the number
/// of unknown bytes. Only the first call has an effect.
///
/// The function runs on the thread that reads. It must not call a CUDA function, because the
/// simulated machine is locked.
pub fn observe_unknown_reads(observer: fn(u64)) {
    let _ = OBSERVER.set(observer);
}

impl Machine {
    /// Counts a read by the program of `unknown` unknown bytes, and reports it.
    pub(crate) fn count_read(&mut self, unknown: u64) {
        self.values.count_read(unknown);
        if unknown > 0
            && let Some(observer) = OBSERVER.get()
        {
            observer(unknown);
        }
    }
}
