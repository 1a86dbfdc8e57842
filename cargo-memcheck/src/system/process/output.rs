//! Collects the output of a child in the background, with bounded memory.

use std::io::Read;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use memcheck_core::runs::capture;
use serde::{Deserialize, Serialize};

/// The middle of a long stream is left out, and a line marks the cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// True if stdout has a cut.
    #[serde(skip)]
    pub(crate) is_cut: bool,
}

impl Output {
    pub(super) fn new((stdout, is_cut): (String, bool), (stderr, _): (String, bool)) -> Self {
        Self { stdout, stderr, is_cut }
    }

    /// The lines that libtest prints around a single test do not help the reader.
    pub(crate) fn own_lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.stdout.lines().filter_map(without_frame).collect();
        lines.extend(self.stderr.lines().filter(|line| !line.trim().is_empty()));
        lines
    }
}

/// `None` if no text remains.
fn without_frame(line: &str) -> Option<&str> {
    // `test a::b ... ` has no line end if the test prints directly after it.
    let own = match line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
        Some((_, "ok" | "FAILED" | "ignored")) => return None,
        Some((_, rest)) => rest,
        None => line,
    };
    let frame = own.trim().is_empty()
        || ["running 1 test", "failures:"].contains(&own.trim())
        || own.starts_with("test result: ");
    (!frame).then_some(own)
}

/// Keeps the bytes as they arrive, so that they are available even if another process keeps the
/// pipe open.
#[derive(Debug)]
pub(super) struct OutputCollector {
    kept: Arc<Mutex<capture::StreamCapture>>,
    ended: mpsc::Receiver<()>,
}

/// The size of a pipe.
const CHUNK: usize = 64 << 10;

impl OutputCollector {
    pub(super) fn start(pipe: Option<impl Read + Send + 'static>, most: usize) -> Self {
        let kept = Arc::new(Mutex::new(capture::StreamCapture::new(most)));
        let (sender, ended) = mpsc::channel();
        let to = Arc::clone(&kept);
        std::thread::spawn(move || {
            let mut chunk = vec![0; CHUNK];
            if let Some(mut pipe) = pipe {
                while let Ok(count @ 1..) = pipe.read(&mut chunk) {
                    to.lock().expect("no reader panics").add(&chunk[..count]);
                }
            }
            let _ = sender.send(());
        });
        Self { kept, ended }
    }

    pub(super) fn finish(self, patience: Duration) -> (String, bool) {
        let _ = self.ended.recv_timeout(patience);
        let kept = self.kept.lock().expect("no reader panics");
        (kept.text(), kept.left_out() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_harness_are_removed_from_the_output() {
        let output = Output {
            stdout: "\nrunning 1 test\ntest a::b ... mine\ntest a::b ... FAILED\n\nfailures:\n\ntest result: FAILED. 0 passed\n".to_owned(),
            stderr: "thread 'a::b' panicked at src/lib.rs:3:5:\n".to_owned(),
            is_cut: false,
        };
        assert_eq!(output.own_lines(), ["mine", "thread 'a::b' panicked at src/lib.rs:3:5:"]);
    }
}
