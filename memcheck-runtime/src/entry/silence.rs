//! Suppresses the output of the process for a while.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// While it lives, the output of the process to stdout and stderr is discarded.
pub(super) struct Silence(Option<[OwnedFd; 2]>);

impl Silence {
    /// Starts to discard the output. Has no effect if the system refuses the file descriptors.
    pub(super) fn begin() -> Self {
        Self(begin().ok())
    }
}

/// Redirects both streams, and returns copies of their former descriptors.
fn begin() -> std::io::Result<[OwnedFd; 2]> {
    let nowhere: File = OpenOptions::new().write(true).open("/dev/null")?;
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    let before = [stdout.as_fd().try_clone_to_owned()?, stderr.as_fd().try_clone_to_owned()?];
    turn(stdout.as_fd(), &nowhere);
    turn(stderr.as_fd(), &nowhere);
    Ok(before)
}

/// Makes `stream` a duplicate of `to`.
fn turn(stream: BorrowedFd<'_>, to: &impl AsRawFd) {
    let _ = std::io::stdout().flush();
    // SAFETY: both descriptors are open during the call, and `dup2` does not access memory.
    // `stream` stays valid when `to` is closed, because `dup2` duplicates the open file.
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
