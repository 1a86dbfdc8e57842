//! Whether this process is the one that memcheck was started in, or a child that the program has
//! forked. A forked child has a copy of the job and of everything that was counted, so that it must
//! not report anything.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The process in which `main` began; 0 before that.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// Must be called before `main`, and before any other function of this module.
pub(crate) fn begin() {
    STARTED.store(std::process::id(), Relaxed);
}

/// True if the program has forked this process.
pub(crate) fn is_child() -> bool {
    // The standard library asks the system each time.
    STARTED.load(Relaxed) != std::process::id()
}
