//! The cargo process of a build: starts it, reads both of its output streams, and ends it if a
//! signal arrives.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use cargo_metadata::{Artifact, BuildScript, Message};

use super::progress::{self, Meter};
use super::{BuildError, BuildGoal};
use crate::build::provenance::is_local;
use crate::system::process::{Interrupt, Membership, Supervised, Terms};

const TICK: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(super) struct CargoOutput {
    pub(super) status: ExitStatus,
    /// The artifacts of all packages that are a folder on this machine.
    pub(super) own: Vec<Artifact>,
    /// Those that the goal includes.
    pub(super) artifacts: Vec<Artifact>,
    pub(super) scripts: Vec<BuildScript>,
}

pub(super) fn run(
    mut command: Command,
    goal: BuildGoal<'_>,
    meter: &Meter,
) -> Result<CargoOutput, BuildError> {
    command.args(progress::ARGUMENTS);
    let terms = Terms { membership: Membership::OfCommand, ..Terms::OWN };
    let child = Supervised::start(&command, terms, |command| {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(())
    });
    let mut child = child.map_err(BuildError::Cargo)?;
    let stdout = BufReader::new(child.stdout().expect("stdout is piped"));
    let stderr = child.stderr().expect("stderr is piped");
    let killer = child.killer().map_err(BuildError::Cargo)?;
    let on_signal = killer.clone();
    let result = thread::scope(|scope| {
        let (done, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            // The terminal sends Ctrl-C to cargo, too. Other signals, and those of other senders,
            // may reach only this process.
            if Interrupt::comes_before(&ended) {
                on_signal.kill();
            }
        });
        let (_built, ended) = mpsc::channel::<()>();
        scope.spawn(move || listen(stderr, meter));
        scope.spawn(move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                meter.tick();
            }
        });
        let result = read_messages(stdout, goal, meter);
        // Ends the thread that waits for a signal.
        drop(done);
        if result.is_err() {
            // Otherwise cargo waits until its messages are read.
            killer.kill();
        }
        result
    });
    let ended = child.wait_for_end();
    let output = result.map_err(BuildError::Cargo)?;
    Ok(CargoOutput { status: ended.map_err(BuildError::Cargo)?, ..output })
}

fn read_messages(
    stdout: impl BufRead,
    goal: BuildGoal<'_>,
    meter: &Meter,
) -> io::Result<CargoOutput> {
    let mut output = CargoOutput::default();
    for message in Message::parse_stream(stdout) {
        match message? {
            Message::CompilerArtifact(artifact) => {
                if !artifact.fresh {
                    meter.compiled();
                }
                if is_local(&artifact.package_id) {
                    output.own.push(artifact.clone());
                }
                if artifact.executable.is_some() && goal.includes(&artifact) {
                    output.artifacts.push(artifact);
                }
            }
            Message::BuildScriptExecuted(script) => output.scripts.push(script),
            _ => {}
        }
    }
    Ok(output)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextEnd {
    /// Cargo draws the next piece over this one.
    Return,
    Line,
}

fn listen(stderr: impl Read, meter: &Meter) {
    pieces(stderr, |text, end| {
        let text = String::from_utf8_lossy(text);
        match end {
            TextEnd::Return => meter.redrawn(&text),
            TextEnd::Line => meter.line(&text),
        }
    });
}

/// A line that is drawn repeatedly is split into its states.
fn pieces(mut stream: impl Read, mut on_piece: impl FnMut(&[u8], TextEnd)) {
    let mut unread: Vec<u8> = Vec::new();
    let mut chunk = [0; 8192];
    while let Ok(count @ 1..) = stream.read(&mut chunk) {
        unread.extend_from_slice(&chunk[..count]);
        while let Some(at) = unread.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (end, length) = match (unread[at], unread.get(at + 1)) {
                (b'\n', _) => (TextEnd::Line, 1),
                (_, Some(b'\n')) => (TextEnd::Line, 2),
                (_, Some(_)) => (TextEnd::Return, 1),
                // This can be the first half of `\r\n`, so the next byte is needed.
                (_, None) => break,
            };
            on_piece(&unread[..at], end);
            unread.drain(..at + length);
        }
    }
    let rest = unread.strip_suffix(b"\r").unwrap_or(&unread);
    if !rest.is_empty() {
        on_piece(rest, if rest.len() < unread.len() { TextEnd::Return } else { TextEnd::Line });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redrawn_bars_and_complete_lines_are_distinguished() {
        struct Slow<'a>(&'a [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.0.read(&mut into[..1])
            }
        }
        let text = "a\n[> ] 0/2\r[=>] 1/2\r\nb\n\nlast".as_bytes();
        let expected = [
            ("a", TextEnd::Line),
            ("[> ] 0/2", TextEnd::Return),
            ("[=>] 1/2", TextEnd::Line),
            ("b", TextEnd::Line),
            ("", TextEnd::Line),
            ("last", TextEnd::Line),
        ];
        let mut whole = Vec::new();
        pieces(text, |piece, end| whole.push((String::from_utf8(piece.to_vec()).unwrap(), end)));
        let mut slow = Vec::new();
        let of = |piece: &[u8]| String::from_utf8(piece.to_vec()).unwrap();
        pieces(Slow(text), |piece, end| slow.push((of(piece), end)));
        let expected = expected.map(|(piece, end)| (piece.to_owned(), end));
        assert_eq!((whole.as_slice(), slow.as_slice()), (&expected[..], &expected[..]));
    }
}
