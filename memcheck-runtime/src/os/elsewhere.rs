//! Systems that are not Unix: no process is forked there, and files have no descriptors.

use std::fs::File;
use std::path::Path;
use std::process::Command;

/// The identity of a file: not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity;

impl Identity {
    /// The identity of the file that is opened by this path.
    pub(crate) fn at(_: &Path) -> Option<Self> {
        None
    }
}

/// A file that stays open while a body runs.
#[derive(Debug)]
pub(crate) struct KeptFile(File);

impl KeptFile {
    pub(crate) fn new(file: File) -> Self {
        Self(file)
    }

    /// The file.
    pub(crate) fn get(&mut self) -> Option<&File> {
        Some(&self.0)
    }

    pub(crate) fn identity(&self) -> Option<Identity> {
        None
    }
}

/// The output is not discarded.
pub(crate) struct Silence;

impl Silence {
    pub(crate) fn begin() -> Self {
        Self
    }
}

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
