//! The settings of the system that a process inherits and that would end it without a message: the
//! reaction to signals, and the size of the main thread's stack.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGABRT, SIGCHLD, SIGSEGV, SIGXFSZ};

use super::ignored::is_ignored;

/// Rust's own programs have this much on Linux.
const STACK: usize = 8 << 20;

/// Must be called before the first child process starts. A handler ends with this process's image,
/// so that children have the default reaction.
pub(crate) fn handle_signals() -> io::Result<()> {
    // If a daemon or a shell (`trap "" CHLD`) ignores the end of its children, the kernel reaps
    // them, and no exit status can be read.
    if is_ignored(SIGCHLD) {
        signal_hook::flag::register(SIGCHLD, Arc::default())?;
    }
    // A write beyond `ulimit -f` must be an error and not the end of this process.
    if !is_ignored(SIGXFSZ) {
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    }
    Ok(())
}

/// Calls `work` on a thread, because `ulimit -s` limits the stack of the main thread.
pub(crate) fn with_whole_stack<T: Send + 'static>(work: fn() -> T) -> T {
    // The name is the one in messages of panics.
    let thread = thread::Builder::new().name("main".to_owned()).stack_size(STACK).spawn(work);
    match thread {
        Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        // A machine without another thread may still have enough stack.
        Err(_) => work(),
    }
}

/// The limit of the system that can have ended a child with this status, and how to raise it.
pub(crate) fn advice(status: ExitStatus) -> Option<String> {
    let advice = match status.signal()? {
        SIGXFSZ => {
            "`ulimit -f` limits the size of the files that this command and its children write: \
             raise it, or run the command in a shell with `ulimit -f unlimited`"
        }
        SIGABRT | SIGSEGV => {
            "if `ulimit -s` is below 8192, the stack of the program may be too small: raise it"
        }
        _ => return None,
    };
    Some(advice.to_owned())
}
