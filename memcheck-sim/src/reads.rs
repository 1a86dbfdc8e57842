//! Reports reads of unknown values to an observer, while the program's call is still on the stack.

use std::sync::OnceLock;

use crate::machine::Machine;

/// A read of unknown values by the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownRead {
    /// The number of unknown bytes, which read as zeros.
    pub bytes: u64,
    /// candle's name of the element type, such as `f32`, if the kernel that left the values unknown
    /// determines it.
    pub element: Option<&'static str>,
}

static OBSERVER: OnceLock<fn(UnknownRead)> = OnceLock::new();

/// Sets the function that is called for each read of unknown values by the program. Only the first
/// call has an effect.
///
/// The function runs on the thread that reads. It must not call a CUDA function, because the
/// simulated machine is locked.
pub fn observe_unknown_reads(observer: fn(UnknownRead)) {
    let _ = OBSERVER.set(observer);
}

impl Machine {
    /// Counts a read by the program, and reports it.
    pub(crate) fn count_read(&mut self, bytes: u64, element: Option<&'static str>) {
        self.values.count_read(bytes);
        if bytes > 0
            && let Some(observer) = OBSERVER.get()
        {
            observer(UnknownRead { bytes, element });
        }
    }
}
