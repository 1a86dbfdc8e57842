//! The progress of a running test: JSON lines from a pipe.

use std::io::{BufRead, BufReader, PipeReader};

use memcheck_core::protocol::Progress;

/// Hands every line that is progress to `on_progress`, on a thread of its own,
/// until the last writer is gone. Anything else in the pipe is skipped:
/// progress is for people, no verdict hangs on it.
pub(super) fn read(pipe: PipeReader, on_progress: impl Fn(Progress) + Send + 'static) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines() {
            let Ok(line) = line else { break };
            if let Ok(progress) = serde_json::from_str(&line) {
                on_progress(progress);
            }
        }
    });
}
