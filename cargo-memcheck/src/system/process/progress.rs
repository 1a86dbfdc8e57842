//! Reads the progress of a running test as JSON lines from a pipe, or from a file if a launcher
//! starts the test.

use std::io::{PipeReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use memcheck_core::input;
use memcheck_core::wire::protocol::Progress;

const LOOK: Duration = Duration::from_millis(100);
const CHUNK: usize = 64 << 10;
/// A line with a view of the live memory is the longest one.
const LINE: usize = 64 << 10;

/// Skips other lines, because progress is only displayed and no verdict depends on it.
pub(super) fn read(mut pipe: PipeReader, on_progress: impl Fn(Progress) + Send + 'static) {
    std::thread::spawn(move || {
        let mut lines = ProgressLines::default();
        let mut chunk = vec![0; CHUNK];
        while let Ok(count @ 1..) = pipe.read(&mut chunk) {
            lines.add(&chunk[..count], &on_progress);
        }
    });
}

/// Finds the newest progress in the pieces of a stream. It keeps only the line that is not
/// complete.
#[derive(Debug, Default)]
struct ProgressLines {
    begun: Vec<u8>,
    /// The line is too long, and its beginning has been discarded.
    is_overlong: bool,
}

impl ProgressLines {
    fn add(&mut self, piece: &[u8], on_progress: &impl Fn(Progress)) {
        let Some(end) = piece.iter().rposition(|byte| *byte == b'\n') else {
            self.begin(piece);
            return;
        };
        let (complete, rest) = (&piece[..end], &piece[end + 1..]);
        let mut lines = complete.split(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        self.begin(first);
        // Older progress would be replaced on the screen at once.
        let newest = lines.rev().find_map(parse);
        let newest = newest.or_else(|| if self.is_overlong { None } else { parse(&self.begun) });
        (self.begun, self.is_overlong) = (Vec::new(), false);
        self.begin(rest);
        if let Some(newest) = newest {
            on_progress(newest);
        }
    }

    fn begin(&mut self, bytes: &[u8]) {
        self.is_overlong |= self.begun.len() + bytes.len() > LINE;
        if self.is_overlong {
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(bytes);
        }
    }
}

/// `None` for a line that is not progress, also if it is not text.
fn parse(line: &[u8]) -> Option<Progress> {
    serde_json::from_slice(line).ok()
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
        // Its size has no limit, because only its last lines are kept.
        let mut file = input::open(path, u64::MAX)?;
        let (begun, stop) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (has_begun, is_over) = (Arc::clone(&begun), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut lines = ProgressLines::default();
            let mut chunk = vec![0; CHUNK];
            while !is_over.load(Ordering::SeqCst) {
                match file.read(&mut chunk) {
                    Ok(count @ 1..) => {
                        has_begun.store(true, Ordering::SeqCst);
                        lines.add(&chunk[..count], &on_progress);
                    }
                    // The file can still grow, so that the thread must read it again after its end.
                    // It is parked, so that `stop` does not have to wait.
                    _ => std::thread::park_timeout(LOOK),
                }
            }
        });
        Ok(Self { path: path.to_owned(), begun, stop, thread: Some(thread) })
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }

    /// Looks at the file again, because this machine may not have seen the last changes of a file
    /// on another machine.
    pub(super) fn finish(mut self) -> bool {
        self.stop();
        let _ = self.thread.take().map(JoinHandle::join);
        self.begun.load(Ordering::SeqCst)
            || std::fs::metadata(&self.path).is_ok_and(|file| file.len() > 0)
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
    use std::fs::File;
    use std::io::Write;
    use std::sync::mpsc;

    fn progress(iteration: u32) -> Progress {
        Progress { iteration, of: 9, live: 1, ..Progress::default() }
    }

    fn line(iteration: u32) -> Vec<u8> {
        [serde_json::to_vec(&progress(iteration)).unwrap(), b"\n".to_vec()].concat()
    }

    /// The newest progress of a stream that arrives in pieces of this size, and the most bytes that
    /// were kept.
    fn newest(stream: &[u8], size: usize) -> (Option<Progress>, usize) {
        let newest = std::cell::RefCell::new(None);
        let mut lines = ProgressLines::default();
        let mut most = 0;
        for piece in stream.chunks(size) {
            lines.add(piece, &|progress| *newest.borrow_mut() = Some(progress));
            most = most.max(lines.begun.capacity());
        }
        (newest.into_inner(), most)
    }

    #[test]
    fn progress_after_a_line_that_is_not_text_or_never_ends_is_read() {
        for junk in [&b"\xff\xfe\n"[..], b"{}\n", &[&[b'x'; 100_000][..], b"\n"].concat(), b"\n"] {
            let stream = [&line(1)[..], junk, &line(2)].concat();
            for size in [1, 7, 1000, stream.len()] {
                assert_eq!(newest(&stream, size).0, Some(progress(2)), "{size}");
                assert_eq!(newest(&[&stream[..], junk].concat(), size).0, Some(progress(2)));
            }
        }
        assert_eq!(newest(&[&[b'x'; LINE][..], &line(1)].concat(), 64).0, None);
        assert!(newest(&[b'x'; 1_000_000], CHUNK).1 <= 2 * LINE);
    }

    #[test]
    fn a_long_file_is_read_in_linear_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("progress");
        std::fs::write(&path, [line(1).repeat(1_000_000), line(2)].concat()).unwrap();
        let (sender, receiver) = mpsc::channel();
        let started = std::time::Instant::now();
        let tail = Tail::start(&path, move |progress| sender.send(progress).unwrap()).unwrap();
        while receiver.recv_timeout(Duration::from_secs(60)).unwrap() != progress(2) {}
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
        assert!(tail.finish());
    }

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
                assert_eq!(progress, Progress { iteration, of: 3, live: 9, ..Progress::default() });
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
