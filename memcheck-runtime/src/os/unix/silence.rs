//! Suppresses the output of the process for a while.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};

use super::descriptor::{self, KeptFile};

/// While it lives, the output of the process to stdout and stderr is discarded.
pub(crate) struct Silence(Option<[KeptFile; 2]>);

impl Silence {
    /// Starts to discard the output. Has no effect if the system refuses the file descriptors.
    pub(crate) fn begin() -> Self {
        Self(redirect_to_null().ok())
    }
}

/// Redirects both streams, and returns copies of their former descriptors.
fn redirect_to_null() -> std::io::Result<[KeptFile; 2]> {
    let null: File = OpenOptions::new().write(true).open("/dev/null")?;
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    let kept = |stream: BorrowedFd<'_>| {
        stream.try_clone_to_owned().map(|copy| KeptFile::new(File::from(copy)))
    };
    let before = [kept(stdout.as_fd())?, kept(stderr.as_fd())?];
    redirect(stdout.as_fd(), &null);
    redirect(stderr.as_fd(), &null);
    Ok(before)
}

/// Makes `stream` a duplicate of `to`.
fn redirect(stream: BorrowedFd<'_>, to: &File) {
    let _ = std::io::stdout().flush();
    descriptor::redirect(stream, to);
}

impl Drop for Silence {
    fn drop(&mut self) {
        let Some([stdout, stderr]) = &mut self.0 else { return };
        // A stream whose copy the body has closed stays silent.
        if let Some(stdout) = stdout.get() {
            redirect(std::io::stdout().as_fd(), stdout);
        }
        if let Some(stderr) = stderr.get() {
            redirect(std::io::stderr().as_fd(), stderr);
        }
    }
}
