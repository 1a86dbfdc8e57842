//! Reports launches that the simulated device did not compute, while the program's call is on the
//! stack.

use std::sync::OnceLock;

use crate::machine::Machine;

/// A launch whose results are unknown because the device does not know its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsimulated<'a> {
    /// The name of the kernel or of the launcher.
    pub name: &'a str,
    /// The package that contains it, with its version, after the file if that is known; empty if
    /// the package is not known.
    pub source: &'a str,
    /// The functions that a launcher calls to allocate memory, which are not simulated either;
    /// empty if its source shows none.
    pub allocations: &'a str,
    /// True if it belongs to candle, in a version whose sources the device does not know.
    pub is_of_candle: bool,
    /// True if the launcher has the name of one of candle's, which the program's own replaces.
    pub replaces_candle: bool,
}

static OBSERVER: OnceLock<fn(Unsimulated<'_>)> = OnceLock::new();

/// Sets the function that is called for each launch that the device did not compute. Only the first
/// call has an effect.
///
/// The function runs on the thread that launches. It must not call a CUDA function, because the
/// simulated machine is locked.
pub fn observe_unsimulated_launches(observer: fn(Unsimulated<'_>)) {
    let _ = OBSERVER.set(observer);
}

impl Machine {
    /// Reports a launch.
    pub(crate) fn count_unsimulated(&self, launch: Unsimulated<'_>) {
        if let Some(observer) = OBSERVER.get() {
            observer(launch);
        }
    }
}
