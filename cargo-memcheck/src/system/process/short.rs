//! Short questions to programs of the system, such as cargo, git or a compiler.

use std::io::{self, Read};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use memcheck_core::runs::capture;

use super::{Interrupt, LOOK_UP};
use super::{Membership, Supervised, Terms};

#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortRun<'a> {
    pub(crate) membership: Membership,
    pub(crate) timeout: Duration,
    /// The most bytes that are kept of each stream.
    pub(crate) most: usize,
    pub(crate) input: Option<&'a [u8]>,
}

impl ShortRun<'_> {
    /// For a program that the command trusts to end.
    pub(crate) const TRUSTED: Self = Self {
        membership: Membership::OfCommand,
        timeout: Duration::MAX,
        most: usize::MAX,
        input: None,
    };

    pub(crate) const fn within(timeout: Duration) -> Self {
        Self { membership: Membership::Own, timeout, most: capture::STREAM, input: None }
    }
}

/// The whole output of a program. An error of the kind `Interrupted` after a signal, `TimedOut`
/// after the time-out.
pub(crate) fn short(command: &Command, short: ShortRun<'_>) -> io::Result<Output> {
    let started = Instant::now();
    let terms = Terms { membership: short.membership, input: short.input, ..Terms::OWN };
    let mut child = Supervised::start(command, terms, |command| {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(())
    })?;
    let stdout = collect(child.stdout(), short.most);
    let stderr = collect(child.stderr(), short.most);
    let status: ExitStatus = loop {
        if let Some(status) = child.wait(LOOK_UP)? {
            break status;
        }
        if Interrupt::has_come() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if started.elapsed() > short.timeout {
            return Err(io::ErrorKind::TimedOut.into());
        }
    };
    drop(child);
    // A service that the program has started can keep the pipe open.
    let text = |bytes: &mpsc::Receiver<Vec<u8>>| {
        let mut text = Vec::new();
        while let Ok(piece) = bytes.recv_timeout(super::DRAIN) {
            text.extend(piece);
        }
        text
    };
    Ok(Output { status, stdout: text(&stdout), stderr: text(&stderr) })
}

/// Reads the pipe to its end, so that the program does not wait, and sends its first bytes.
fn collect(pipe: Option<impl Read + Send + 'static>, mut left: usize) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut chunk = vec![0; 64 << 10];
        let Some(mut pipe) = pipe else { return };
        while let Ok(count @ 1..) = pipe.read(&mut chunk) {
            let kept = count.min(left);
            left -= kept;
            if kept > 0 && sender.send(chunk[..kept].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}
