//! Descriptors and handlers of Unix.

mod descriptor;
mod silence;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub(crate) use descriptor::{Identity, KeptFile};
pub(crate) use silence::Silence;

#[cfg(test)]
pub(crate) use descriptor::redirect;

/// Replaces this process by another program. Returns only if the system refuses.
pub(crate) fn exec(mut command: Command) -> std::io::Error {
    command.exec()
}

/// Reads from the start of a file, whose position stays the same.
pub(crate) fn read_start(file: &File, into: &mut [u8]) -> std::io::Result<usize> {
    file.read_at(into, 0)
}

/// Calls `handler` in each child that the program forks. It may only store to atomics.
pub(crate) fn in_forked_children(handler: extern "C" fn()) {
    // SAFETY: the handler only stores to atomics, which is allowed after fork.
    unsafe { libc::pthread_atfork(None, None, Some(handler)) };
}

/// Calls `handler`, which must not unwind, when the program exits. False if the system refuses.
pub(crate) fn at_exit(handler: extern "C" fn()) -> bool {
    // SAFETY: the handler is a function without arguments that does not unwind.
    unsafe { libc::atexit(handler) == 0 }
}

/// Ends this process without the handlers of an exit.
pub(crate) fn exit_at_once(code: i32) -> ! {
    // SAFETY: the call takes a number and does not return.
    unsafe { libc::_exit(code) }
}
