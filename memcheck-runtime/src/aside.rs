//! Threads of the instrument.

use std::io;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};

use memcheck_core::quiet;

/// Starts a quiet thread, and waits until it is quiet: the system allocates for a thread
/// before that, which must not fall into the body.
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
