//! This executable as the supervisor of a child process.

use std::io;
use std::sync::Arc;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::ignored::is_ignored;
use super::with_whole_stack;

/// True if this process was started as a supervisor. Its work is done then.
pub(crate) fn run_if_supervisor() -> bool {
    with_whole_stack(|| memcheck_conduct::supervisor::run_if_named(outlive_signals))
}

/// The terminal sends Ctrl-C to the whole group of the command, and only the command decides.
fn outlive_signals() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        // A handler ends with this process's image, so that the program has the usual reaction to a
        // signal, or ignores it.
        if !is_ignored(signal) {
            signal_hook::flag::register(signal, Arc::default())?;
        }
    }
    Ok(())
}

/// The harness of the unit tests does not call the command's `main`, so that its supervisors begin
/// before its own.
#[cfg(test)]
#[ctor::ctor(unsafe)]
fn before_the_harness() {
    if run_if_supervisor() {
        std::process::exit(0);
    }
}
