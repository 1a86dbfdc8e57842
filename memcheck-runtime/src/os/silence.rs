//! Suppresses the output of the process for a while.

use std::fs::OpenOptions;

use super::descriptor::KeptFile;

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
    let null = OpenOptions::new().write(true).open("/dev/null")?;
    let before = super::streams()?.map(KeptFile::new);
    super::redirect_streams([Some(&null), Some(&null)]);
    Ok(before)
}

impl Drop for Silence {
    fn drop(&mut self) {
        let Some([stdout, stderr]) = &mut self.0 else { return };
        // A stream whose copy the body has closed stays silent.
        super::redirect_streams([stdout.get(), stderr.get()]);
    }
}
