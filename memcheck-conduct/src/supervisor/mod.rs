//! Every process that memcheck starts has a supervisor: this executable, started a second time under
//! the name `memcheck-supervisor`. This executable is the command or, under a plain harness, that of
//! the tests.
//!
//! ```text
//! starter ──socket── supervisor ── program ── its children, also those in sessions of their own
//! ```
//!
//! The starter has one end of a socket, and the supervisor the other. The kernel closes the
//! starter's end however the starter ends, so that the supervisor then kills the program and all
//! its descendants. It adopts descendants whose parents have ended (`PR_SET_CHILD_SUBREAPER`), so
//! that a process cannot leave by a double fork or `setsid`. If the supervisor is killed, the kernel
//! kills the program (`PR_SET_PDEATHSIG`).

mod descendants;
mod messages;
mod process;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use descendants::PATIENCE;
use memcheck_core::wire::last_state::{LastState, STACK_SIGNAL};
use messages::{ASK_FOR_STACK, Assignment, KILL, SupervisorAnswer, TERMINATE};

pub use messages::Membership;
pub use process::run_if_named;

/// `argv[0]` of a supervisor, which has no arguments.
const NAME: &str = "memcheck-supervisor";

/// A thread stores its stack in milliseconds, unless it waits for a processor. A call of a driver can
/// keep the signal away for ever.
const STACK_PATIENCE: Duration = Duration::from_secs(1);

/// The sockets of all supervisors that run, by their ids, so that another thread can end them after
/// a signal.
static RUNNING: Mutex<Vec<(u32, UnixStream)>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<(u32, UnixStream)>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks all supervisors to kill their programs, and waits until they have ended or `patience` is
/// over.
pub fn end_all(patience: Duration) {
    let deadline = Instant::now() + patience;
    let mut running = running();
    // All of them first, so that they end at the same time.
    for (_, socket) in running.iter_mut() {
        let _ = socket.write_all(&[KILL]);
    }
    for (_, mut socket) in running.drain(..) {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let _ = socket.set_read_timeout(Some(left));
        // The supervisor closes its end when all descendants have ended.
        let _ = socket.read_to_end(&mut Vec::new());
    }
}

/// How a program is supervised.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// Its process group.
    pub membership: Membership,
    /// The time in which the program can end itself after SIGTERM, before it is killed.
    pub grace: Option<Duration>,
    /// Its standard input; empty without one.
    pub input: Option<&'a [u8]>,
    /// Its argument 0, if that is not its path.
    pub name: Option<&'a OsStr>,
    /// The report that the starter reads. If the starter has ended, the supervisor removes it, the
    /// state of its process, and their folder if nothing else is in it.
    pub unread: Option<&'a Path>,
}

impl Terms<'_> {
    /// Those of a program that leads a process group.
    pub const OWN: Self =
        Self { membership: Membership::Own, grace: None, input: None, name: None, unread: None };
}

/// A program that runs under a supervisor. It ends when this value is dropped.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Child,
    socket: BufReader<UnixStream>,
    /// The part of an answer that has arrived.
    unread: Vec<u8>,
    status: Option<ExitStatus>,
}

/// The executable of this process, also if another file has its path by now.
pub const OWN_EXECUTABLE: &str = "/proc/self/exe";

impl Supervised {
    /// Starts the program. `streams` sets its output, and descriptors that it inherits.
    ///
    /// # Errors
    /// If the system cannot start it.
    pub fn start(
        program: &Command,
        terms: Terms<'_>,
        streams: impl FnOnce(&mut Command) -> io::Result<()>,
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(OWN_EXECUTABLE);
        command.arg0(NAME).stdin(OwnedFd::from(theirs));
        if terms.membership == Membership::Own {
            command.process_group(0);
        }
        streams(&mut command)?;
        let supervisor = command.spawn()?;
        // The command owns this process's copies of the other ends.
        drop(command);
        running().push((supervisor.id(), ours.try_clone()?));
        let mut started =
            Self { supervisor, socket: BufReader::new(ours), unread: Vec::new(), status: None };
        let mut line = serde_json::to_vec(&Assignment::new(program, terms))?;
        line.push(b'\n');
        // A supervisor that has ended leaves no answer, which is the error then.
        let _ = started.socket.get_mut().write_all(&line);
        match started.answer()? {
            Some(SupervisorAnswer::Started) => Ok(started),
            Some(SupervisorAnswer::Failed(error)) => Err(io::Error::from_raw_os_error(error)),
            Some(SupervisorAnswer::Ended(_)) | None => {
                Err(io::Error::other("the supervisor of the process has ended"))
            }
        }
    }

    /// Its standard output, if it is a pipe.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.supervisor.stdout.take()
    }

    /// Its standard error, if it is a pipe.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.supervisor.stderr.take()
    }

    /// `None` at the end of the socket.
    fn answer(&mut self) -> io::Result<Option<SupervisorAnswer>> {
        loop {
            match self.socket.read_until(b'\n', &mut self.unread) {
                Ok(0) => return Ok(None),
                Ok(_) => {
                    let line = std::mem::take(&mut self.unread);
                    return Ok(serde_json::from_slice(&line).ok());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The supervisor has ended without reading the last message.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for its end. `None` if it still runs after `patience`.
    ///
    /// # Errors
    /// If the socket cannot be read.
    pub fn wait(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        if self.status.is_some() {
            return Ok(self.status);
        }
        // A socket does not accept a time-out of zero.
        let patience = patience.max(Duration::from_millis(1));
        self.socket.get_ref().set_read_timeout(Some(patience))?;
        match self.answer() {
            Ok(Some(SupervisorAnswer::Ended(raw))) => self.status = Some(ExitStatus::from_raw(raw)),
            // The supervisor was killed, so that the kernel has killed the program.
            Ok(_) => self.status = Some(self.supervisor.wait()?),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
        Ok(self.status)
    }

    /// Waits for its end, however long it takes.
    ///
    /// # Errors
    /// If the socket cannot be read.
    pub fn wait_for_end(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.wait(PATIENCE)? {
                return Ok(status);
            }
        }
    }

    /// Ends it from another thread.
    ///
    /// # Errors
    /// If the process has no further file descriptor.
    pub fn killer(&self) -> io::Result<Killer> {
        self.socket.get_ref().try_clone().map(|socket| Killer(Arc::new(socket)))
    }

    /// Asks a test process for the call stack of its body, and waits until it is in the state next to
    /// `report`. A process that is not known to run a body is not asked.
    pub fn ask_for_stack(&mut self, report: &Path) {
        let state = || LastState::read(report).filter(|state| state.has_body);
        if state().is_none() {
            return;
        }
        self.send(ASK_FOR_STACK);
        let is_stored =
            |state: LastState| state.stack.is_some_and(|stack| stack.signal == STACK_SIGNAL);
        let deadline = Instant::now() + STACK_PATIENCE;
        while Instant::now() < deadline && !state().is_some_and(is_stored) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends SIGTERM. The supervisor kills the program at the end of its grace.
    pub fn terminate(&mut self) {
        self.send(TERMINATE);
    }

    /// Kills the program.
    pub fn kill(&mut self) {
        self.send(KILL);
    }

    fn send(&mut self, message: u8) {
        // The socket is closed if the program has already ended.
        let _ = self.socket.get_mut().write_all(&[message]);
    }

    /// Kills the program, and waits until its descendants have ended too.
    fn finish(&mut self) {
        self.kill();
        let deadline = Instant::now() + PATIENCE;
        let _ = self.socket.get_ref().set_read_timeout(Some(PATIENCE));
        while Instant::now() < deadline && matches!(self.answer(), Ok(Some(_))) {}
        // To close it is not enough, because `RUNNING` and a `Killer` have copies.
        let _ = self.socket.get_ref().shutdown(Shutdown::Both);
        let is_over = |supervisor: &mut Child| !matches!(supervisor.try_wait(), Ok(None));
        while !is_over(&mut self.supervisor) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        running().retain(|(id, _)| *id != self.supervisor.id());
    }
}

/// Ends a program from another thread.
#[derive(Debug, Clone)]
pub struct Killer(Arc<UnixStream>);

impl Killer {
    /// Kills the program.
    pub fn kill(&self) {
        // The socket is closed if the program has already ended.
        let _ = self.0.as_ref().write_all(&[KILL]);
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.finish();
    }
}
