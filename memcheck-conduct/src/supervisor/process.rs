//! The process of a supervisor.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use memcheck_core::wire::last_state::{self, STACK_SIGNAL};

use super::messages::{ASK_FOR_STACK, Assignment, KILL, Membership, SupervisorAnswer, TERMINATE};
use super::{NAME, PATIENCE, descendants};
use crate::os::{self, Pid};

/// True if this process was started as a supervisor. Its work is done then. `prepare` is called
/// before the program starts, and protects this process from signals that are meant for the starter.
pub fn run_if_named(prepare: impl FnOnce() -> io::Result<()>) -> bool {
    let mut arguments = std::env::args_os();
    let is_named = arguments.next().is_some_and(|name| name == NAME) && arguments.next().is_none();
    if is_named {
        // The name of a process is that of its main thread.
        // The system keeps 15 characters.
        os::take_name("memcheck-superv");
        // The starter sees the end of the socket, and has nothing to learn from the reason.
        let _ = supervise(prepare);
    }
    is_named
}

// Half a second in all, which is far more than a process needs between fork and exec.
const BUSY_RETRIES: u32 = 20;

const BUSY_PAUSE: Duration = Duration::from_millis(25);

#[derive(Debug)]
enum Event {
    Ended(i32),
    AskForStack,
    Terminate,
    Kill,
    /// The starter has ended.
    HangUp,
}

fn supervise(prepare: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // The standard input of the program is not the socket, and the copy of the socket is closed in
    // the program.
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut messages = BufReader::new(socket.try_clone()?);
    let mut line = Vec::new();
    messages.read_until(b'\n', &mut line)?;
    let assignment: Assignment = serde_json::from_slice(&line)?;
    prepare()?;
    os::ignore_closed_pipes();
    // Without it, processes in other groups can outlive the program.
    let _ = os::adopt_descendants();
    // On the main thread, because the kernel kills the program when the thread that forked it
    // ends.
    let program = match start(&assignment) {
        Ok(program) => program,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(libc::EINVAL);
            return answer(&mut socket, SupervisorAnswer::Failed(number));
        }
    };
    let (sender, events) = mpsc::channel();
    let to_main = sender.clone();
    std::thread::spawn(move || read(messages, &to_main));
    std::thread::spawn(move || {
        let status = descendants::wait_for(program).unwrap_or(libc::SIGKILL);
        let _ = sender.send(Event::Ended(status));
    });
    // If the command has ended, the events contain the end of the socket.
    let _ = answer(&mut socket, SupervisorAnswer::Started);
    let end = watch(&events, program, &assignment);
    if let End::ByItself(status) = end {
        // The starter can have ended too.
        let _ = answer(&mut socket, SupervisorAnswer::Ended(status));
        descendants::kill_group(program, assignment.membership);
    } else {
        descendants::kill_program(program, assignment.membership);
        // The other thread must not wait for a process any more when this one does.
        if let Ok(Event::Ended(status)) = ended(&events) {
            let _ = answer(&mut socket, SupervisorAnswer::Ended(status));
        }
    }
    match (assignment.membership, end) {
        (Membership::OfCommand, End::ByItself(_)) => {}
        (membership, _) => descendants::kill_all(membership),
    }
    if let (End::Abandoned, Some(file)) = (end, &assignment.unread) {
        let _ = std::fs::remove_file(file);
        let _ = std::fs::remove_file(last_state::path(file));
        let _ = file.parent().map(std::fs::remove_dir);
    }
    Ok(())
}

fn answer(socket: &mut UnixStream, answer: SupervisorAnswer) -> io::Result<()> {
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    socket.write_all(&line)
}

fn start(assignment: &Assignment) -> io::Result<Pid> {
    let mut command = assignment.command();
    command.stdin(if assignment.input.is_some() { Stdio::piped() } else { Stdio::null() });
    if assignment.membership == Membership::Own {
        command.process_group(0);
    }
    die_with_supervisor(&mut command);
    let mut child = spawn(&mut command)?;
    if let (Some(input), Some(mut stdin)) = (assignment.input.clone(), child.stdin.take()) {
        // A program that does not read all of it is not an error.
        // On another thread, because a program that reads slowly must not delay the watch.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    Pid::try_from(child.id()).map_err(io::Error::other)
}

/// A file that was just written can still be open in a process that its writer has forked and that
/// has not executed its own program yet.
fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY_RETRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(BUSY_PAUSE);
            }
            result => return result,
        }
    }
    command.spawn()
}

#[expect(unsafe_code, reason = "only the new process itself can make this request")]
fn die_with_supervisor(command: &mut Command) {
    let supervisor = Pid::try_from(std::process::id()).unwrap_or_default();
    // SAFETY: between fork and exec the closure makes two system calls. It does not allocate memory
    // and takes no lock.
    unsafe { command.pre_exec(move || os::die_with(supervisor)) };
}

fn read(messages: BufReader<UnixStream>, events: &Sender<Event>) {
    for byte in messages.bytes() {
        let event = match byte {
            Ok(ASK_FOR_STACK) => Event::AskForStack,
            Ok(TERMINATE) => Event::Terminate,
            Ok(KILL) => Event::Kill,
            Ok(_) => continue,
            Err(_) => break,
        };
        let _ = events.send(event);
    }
    let _ = events.send(Event::HangUp);
}

#[derive(Debug, Clone, Copy)]
enum End {
    ByItself(i32),
    Requested,
    /// The starter has ended.
    Abandoned,
}

fn watch(events: &Receiver<Event>, program: Pid, assignment: &Assignment) -> End {
    let mut left = None;
    loop {
        let event = match left {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(left) => events.recv_timeout(left),
        };
        match (event, assignment.grace) {
            (Ok(Event::Ended(status)), _) => return End::ByItself(status),
            // The program is not reaped yet, so that its number cannot belong to another process.
            (Ok(Event::AskForStack), _) => os::signal(program, STACK_SIGNAL),
            (Ok(Event::Terminate | Event::HangUp), Some(grace)) => {
                if left.is_none() {
                    // The signal goes to the program alone because it must end its children itself.
                    os::signal(program, libc::SIGTERM);
                    left = Some(grace);
                }
            }
            (Ok(Event::HangUp), None) => return End::Abandoned,
            (Ok(_) | Err(_), _) => return End::Requested,
        }
    }
}

fn ended(events: &Receiver<Event>) -> Result<Event, RecvTimeoutError> {
    loop {
        match events.recv_timeout(PATIENCE)? {
            Event::Ended(status) => return Ok(Event::Ended(status)),
            Event::AskForStack | Event::Terminate | Event::Kill | Event::HangUp => {}
        }
    }
}

/// The supervisors of the unit tests begin before the harness.
#[cfg(test)]
#[ctor::ctor(unsafe)]
fn before_the_harness() {
    if run_if_named(|| Ok(())) {
        std::process::exit(0);
    }
}
