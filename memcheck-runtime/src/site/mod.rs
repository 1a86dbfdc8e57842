//! Where a block was allocated: the call stack and the scope.
//!
//! Asked for only in a run with attribution. A stack is walked by its unwind
//! tables (`unwind`), as far as it is not one that the thread has walked before
//! (`stacks`); what was walked gets a number (`contexts`), which is all
//! that a block keeps. Once the body has ended, numbers become addresses in the
//! executable (`executable`).

mod arch;
mod contexts;
mod executable;
mod modules;
mod stacks;
mod unwind;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(crate) use contexts::context;
pub(crate) use executable::{Executable, sources};

static ON: AtomicBool = AtomicBool::new(false);

/// Starts to note where blocks come from.
///
/// # Errors
/// When the system refuses memory for the tables.
pub(crate) fn start() -> std::io::Result<()> {
    contexts::map()?;
    unwind::prepare();
    ON.store(true, Relaxed);
    Ok(())
}

/// Stops to note where blocks come from.
pub(crate) fn stop() {
    ON.store(false, Relaxed);
}

/// Whether it is noted where blocks come from.
pub(crate) fn is_on() -> bool {
    ON.load(Relaxed)
}

/// The context of the caller, by number; 0 where nobody asked for it, or where
/// the thread is about to end.
#[inline]
pub(crate) fn here() -> u32 {
    if ON.load(Relaxed) { unwind::here() } else { 0 }
}

/// Runs `work`. While it runs, whatever called this stays where it is.
pub(crate) fn within<R>(work: impl FnOnce() -> R) -> R {
    if ON.load(Relaxed) { unwind::within(work) } else { work() }
}
