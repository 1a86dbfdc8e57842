//! Keeps the process from printing for a while.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// While it lives, what the process prints to stdout and stderr goes nowhere.
pub(super) struct Silence(Option<[OwnedFd; 2]>);

impl Silence {
    /// Begins, if the system has descriptors for it.
    pub(super) fn begin() -> Self {
        Self(begin().ok())
    }
}

/// Turns both streams away, and returns what they were.
fn begin() -> std::io::Result<[OwnedFd; 2]> {
    let nowhere: File = OpenOptions::new().write(true).open("/dev/null")?;
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    let before = [stdout.as_fd().try_clone_to_owned()?, stderr.as_fd().try_clone_to_owned()?];
    turn(stdout.as_fd(), &nowhere);
    turn(stderr.as_fd(), &nowhere);
    Ok(before)
}

/// Makes `stream` another name of `to`.
fn turn(stream: BorrowedFd<'_>, to: &impl AsRawFd) {
    let _ = std::io::stdout().flush();
    // SAFETY: both are open descriptors, `dup2` touches no memory, and a stream is always
    // turned to what outlives the call.
    unsafe { libc::dup2(to.as_raw_fd(), stream.as_raw_fd()) };
}

impl Drop for Silence {
    fn drop(&mut self) {
        if let Some([stdout, stderr]) = &self.0 {
            turn(std::io::stdout().as_fd(), stdout);
            turn(std::io::stderr().as_fd(), stderr);
        }
    }
}
