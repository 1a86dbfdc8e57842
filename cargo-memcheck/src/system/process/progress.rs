//! Reads the progress of a running test as JSON lines from a pipe, or from a file if a launcher
//! starts the test.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use memcheck_core::wire::protocol::Progress;

const LOOK: Duration = Duration::from_millis(100);

/// Skips other lines, because progress is only displayed and no verdict depends on it.
pub(super) fn read(pipe: PipeReader, on_progress: impl Fn(Progress) + Send + 'static) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            let Ok(line) = line else { break };
            forward_progress(&line, &on_progress);
        }
    });
}

fn forward_progress(line: &str, on_progress: &impl Fn(Progress)) {
    if let Ok(progress) = serde_json::from_str(line) {
        on_progress(progress);
    }
}

/// Another process writes the file meanwhile.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    begun: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tail {
    pub(super) fn start(
        path: &Path,
        on_progress: impl Fn(Progress) + Send + 'static,
    ) -> std::io::Result<Self> {
        let mut file = File::open(path)?;
        let (begun, stop) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (has_begun, is_over) = (Arc::clone(&begun), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut unread = Vec::new();
            while !is_over.load(Ordering::SeqCst) {
                // The file can still grow, so that the thread must read it again after its end.
                if matches!(file.read_to_end(&mut unread), Ok(1..)) {
                    has_begun.store(true, Ordering::SeqCst);
                }
                while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = unread.drain(..=end).collect();
                    forward_progress(&String::from_utf8_lossy(&line), &on_progress);
                }
                std::thread::park_timeout(LOOK);
            }
        });
        Ok(Self { path: path.to_owned(), begun, stop, thread: Some(thread) })
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }

    /// Opens the file again, because this machine may not have seen the last changes of a file on
    /// another machine.
    pub(super) fn finish(mut self) -> bool {
        self.stop();
        let _ = self.thread.take().map(JoinHandle::join);
        self.begun.load(Ordering::SeqCst)
            || std::fs::read(&self.path).is_ok_and(|bytes| !bytes.is_empty())
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        // The thread must also stop if the launcher could not start.
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::mpsc;

    #[test]
    fn a_file_is_read_while_it_grows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("progress");
        let mut file = File::create(&path).unwrap();
        let (sender, receiver) = mpsc::channel();
        let tail = Tail::start(&path, move |progress| sender.send(progress).unwrap()).unwrap();
        assert!(!tail.has_begun());
        let patience = Duration::from_secs(20);
        for (piece, iteration) in [("{\"iteration\":1,\"of\"", 0), (":3,\"live\":9}\nno\n", 1)] {
            file.write_all(piece.as_bytes()).unwrap();
            if iteration > 0 {
                let progress = receiver.recv_timeout(patience).unwrap();
                assert_eq!(progress, Progress { iteration, of: 3, live: 9 });
            }
        }
        assert!(tail.finish());
    }

    #[test]
    fn progress_that_was_written_last_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("progress");
        std::fs::write(&path, "").unwrap();
        let tail = Tail::start(&path, |_| {}).unwrap();
        std::fs::write(&path, "x").unwrap();
        assert!(tail.finish());
        assert!(!Tail::start(&path.with_extension("no"), |_| {}).is_ok_and(Tail::finish));
    }
}
