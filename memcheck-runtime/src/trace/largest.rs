//! The call sites that hold most live memory now, for a view of a running program.
//!
//! Another thread asks, and the collector answers when it has time, because the holders belong to
//! the collector. Neither waits for the other, and no thread of the program takes part.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use memcheck_core::space::Space;

use super::Trace;

/// The live memory of one call site in one space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LiveSite {
    pub(crate) space: Space,
    pub(crate) context: u32,
    pub(crate) bytes: u64,
    pub(crate) count: u64,
}

/// The most call sites of a space that are answered.
const MOST: usize = 8;

static ASKED: AtomicBool = AtomicBool::new(false);
static ANSWER: Mutex<Vec<LiveSite>> = Mutex::new(Vec::new());

/// The last answer. Asks for the next one.
pub(crate) fn ask() -> Vec<LiveSite> {
    let answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ASKED.store(true, Relaxed);
    answer
}

/// Must be called by the collector from time to time.
pub(super) fn answer(trace: &Trace) {
    if !ASKED.load(Relaxed) {
        return;
    }
    let largest = trace.largest(MOST);
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = largest;
    ASKED.store(false, Relaxed);
}
