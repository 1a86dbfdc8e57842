//! Reports of the progress of a test to the process that started it.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use memcheck_core::wire::protocol::Progress;

static ITERATION: AtomicU32 = AtomicU32::new(0);
static ITERATIONS: AtomicU32 = AtomicU32::new(0);

/// Stores the number of ended iterations for a live view, and reports the progress if there is a
/// listener. If the listener is gone, the test continues without reports.
pub(crate) fn report(listener: &mut Option<File>, progress: &Progress) {
    ITERATION.store(progress.iteration, Relaxed);
    ITERATIONS.store(progress.of, Relaxed);
    if let Some(file) = listener {
        let line = serde_json::to_string(progress).unwrap_or_default() + "\n";
        if file.write_all(line.as_bytes()).is_err() {
            *listener = None;
        }
    }
}

/// The ended iterations and the total of the last report.
pub(crate) fn iterations() -> (u32, u32) {
    (ITERATION.load(Relaxed), ITERATIONS.load(Relaxed))
}
