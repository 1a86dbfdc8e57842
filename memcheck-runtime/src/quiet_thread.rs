//! Threads of the instrument, whose allocations are not counted as the workload's.

use std::io;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};

use memcheck_core::quiet;

/// Starts a quiet thread and returns once it is quiet. The system allocates memory for a new thread
/// before the thread can become quiet, and these allocations must not fall into the body of a test.
///
/// # Errors
/// If the system refuses the thread.
pub(crate) fn spawn<R: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> R + Send + 'static,
) -> io::Result<JoinHandle<R>> {
    let (begun, has_begun) = mpsc::channel();
    let thread = Builder::new().name(name.to_owned()).spawn(move || {
        let _quiet = quiet::enter();
        let _ = begun.send(());
        work()
    })?;
    let _ = has_begun.recv();
    Ok(thread)
}
