//! Suppresses the output of the process for a while.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// While it lives, the output of the process to stdout and stderr is discarded.
pub(super) struct Silence(Option<[OwnedFd; 2]>);

impl Silence {
    /// Starts to discard the output. Has no effect if the system refuses the file descriptors.
    pub(super) fn begin() -> Self {
        Self(redirect_to_null().ok())
    }
}

/// Redirects both streams, and returns copies of their former descriptors.
fn redirect_to_null() -> std::io::Result<[OwnedFd; 2]> {
    let null: File = OpenOptions::new().write(true).open("/dev/null")?;
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    let before = [stdout.as_fd().try_clone_to_owned()?, stderr.as_fd().try_clone_to_owned()?];
    redirect(stdout.as_fd(), &null);
    redirect(stderr.as_fd(), &null);
    Ok(before)
}

/// Makes `stream` a duplicate of `to`.
fn redirect(stream: BorrowedFd<'_>, to: &impl AsRawFd) {
    let _ = std::io::stdout().flush();
    // SAFETY: both descriptors are open during the call, and `dup2` does not access memory.
    // `stream` stays valid when `to` is closed, because `dup2` duplicates the open file.
    unsafe { libc::dup2(to.as_raw_fd(), stream.as_raw_fd()) };
}

impl Drop for Silence {
    fn drop(&mut self) {
        if let Some([stdout, stderr]) = &self.0 {
            redirect(std::io::stdout().as_fd(), stdout);
            redirect(std::io::stderr().as_fd(), stderr);
        }
    }
}
