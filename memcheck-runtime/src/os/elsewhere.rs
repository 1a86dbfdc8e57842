//! Systems that are not Unix: no process is forked there, and files have no descriptors.

use std::fs::{File, Metadata};
use std::process::Command;

/// All files are the same here.
pub(super) fn identity(_: &Metadata) -> [u64; 3] {
    [0; 3]
}

/// No other number.
pub(super) fn duplicate(_: &File) -> Option<File> {
    None
}

pub(super) fn leave_open(file: File) {
    std::mem::forget(file);
}

/// The streams are not redirected.
pub(super) fn streams() -> std::io::Result<[File; 2]> {
    Err(std::io::ErrorKind::Unsupported.into())
}

pub(super) fn redirect_streams(_: [Option<&File>; 2]) {}

/// Runs another program, and ends as it does. Returns only if the system refuses.
pub(crate) fn exec(mut command: Command) -> std::io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// Reads from the start of a file.
pub(crate) fn read_start(mut file: &File, into: &mut [u8]) -> std::io::Result<usize> {
    use std::io::{Read, Seek};
    file.rewind()?;
    file.read(into)
}

pub(crate) fn in_forked_children(_: extern "C" fn()) {}

/// Calls `handler`, which must not unwind, when the program exits. False if the system refuses.
pub(crate) fn at_exit(handler: extern "C" fn()) -> bool {
    // SAFETY: the handler is a function without arguments that does not unwind.
    unsafe { libc::atexit(handler) == 0 }
}

/// Ends this process.
pub(crate) fn exit_at_once(code: i32) -> ! {
    std::process::exit(code)
}
