//! Reports of the progress of a test to the process that started it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use memcheck_core::wire::protocol::Progress;

use crate::forked;
use crate::os::{Identity, KeptFile};

static ITERATION: AtomicU32 = AtomicU32::new(0);
static ITERATIONS: AtomicU32 = AtomicU32::new(0);

/// The pipe or the file that [`open`] has opened.
static LISTENER: OnceLock<Option<Identity>> = OnceLock::new();

/// Opens the listener at this path.
///
/// # Errors
/// If it cannot be opened.
pub(crate) fn open(path: &Path) -> std::io::Result<KeptFile> {
    let listener = KeptFile::new(OpenOptions::new().write(true).open(path)?);
    LISTENER.get_or_init(|| listener.identity());
    Ok(listener)
}

/// True if the path still leads to the listener. The path of an inherited descriptor leads to
/// another file if the body has closed it.
pub(crate) fn is_listener(path: &Path) -> bool {
    LISTENER.get().is_some_and(|listener| *listener == Identity::at(path))
}

/// Stores the number of ended iterations for a live view, and reports the progress if there is a
/// listener. If the listener is gone, or if the body has closed its descriptor, the test continues
/// without reports. A child that the body has forked does not report.
pub(crate) fn report(listener: &mut Option<KeptFile>, progress: &Progress) {
    ITERATION.store(progress.iteration, Relaxed);
    ITERATIONS.store(progress.of, Relaxed);
    if forked::is_child() {
        return;
    }
    let Some(kept) = listener else { return };
    let line = serde_json::to_string(progress).unwrap_or_default() + "\n";
    let is_written = kept.get().is_some_and(|mut file| file.write_all(line.as_bytes()).is_ok());
    if !is_written {
        *listener = None;
    }
}

/// The ended iterations and the total of the last report.
pub(crate) fn iterations() -> (u32, u32) {
    (ITERATION.load(Relaxed), ITERATIONS.load(Relaxed))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::os::redirect;

    #[test]
    fn a_file_of_the_body_gets_no_progress() {
        let folder = tempfile::tempdir().unwrap();
        let [to_us, of_body] = ["progress", "body"].map(|name| folder.path().join(name));
        let file = std::fs::File::create(&of_body).unwrap();
        std::fs::write(&to_us, "").unwrap();
        let mut listener = Some(open(&to_us).unwrap());
        assert!(is_listener(&to_us) && !is_listener(&of_body));
        let progress = |iteration| Progress { iteration, of: 2, ..Progress::default() };
        report(&mut listener, &progress(1));
        let own = listener.as_mut().and_then(KeptFile::get).unwrap();
        redirect(own.as_fd(), &file);
        report(&mut listener, &progress(2));
        assert!(listener.is_none());
        assert_eq!(std::fs::read_to_string(&to_us).unwrap().lines().count(), 1);
        assert_eq!(std::fs::read_to_string(&of_body).unwrap(), "");
        assert_eq!(iterations(), (2, 2));
    }
}
