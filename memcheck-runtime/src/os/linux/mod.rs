//! Linux: a test has a supervisor, and `/proc` has figures.

mod mapped;
mod signals;

use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use memcheck_conduct::supervisor::{self, OWN_EXECUTABLE, Supervised, Terms};

use super::Instrument;
pub(crate) use mapped::map_numbers;
pub(crate) use signals::{follow_signals, thread_number};

pub(crate) const INSTRUMENT: Instrument = Instrument::Complete;

/// The file that this process runs, also if another file has its name now.
pub(crate) fn executable() -> PathBuf {
    OWN_EXECUTABLE.into()
}

/// Another process of this executable, which gets the name of this one as its argument 0.
pub(crate) fn own_executable() -> Command {
    let mut command = Command::new(OWN_EXECUTABLE);
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command
}

/// True if this process was started as the supervisor of a test's own process. Its work is done then.
pub(crate) fn supervise_if_named() -> bool {
    // It leads a process group, so that a signal to the group of the harness does not reach it.
    supervisor::run_if_named(|| Ok(()))
}

/// Gives this process the name that the system gives to one that is started by its path, because
/// that of [`OWN_EXECUTABLE`] is `exe`. The system's log and `ps` print it.
pub(crate) fn take_name() {
    let path = std::env::args_os().next();
    if let Some(name) = path.as_ref().and_then(|path| Path::new(path).file_name()) {
        // The name is for people only.
        let _ = fs::write("/proc/self/comm", name.as_encoded_bytes());
    }
}

/// The process of a test, which ends with everything that it has started when this value is dropped.
pub(crate) struct TestProcess(Supervised);

impl TestProcess {
    /// Starts this executable again, with argument 0 of this process: a build can have replaced the
    /// file meanwhile, so that its path would start another program. If this process is killed, the
    /// supervisor removes `report`.
    pub(crate) fn start(set_up: impl FnOnce(&mut Command), report: &Path) -> std::io::Result<Self> {
        keep_ended_children();
        let mut command = Command::new(OWN_EXECUTABLE);
        set_up(&mut command);
        let name = std::env::args_os().next();
        let terms = Terms { name: name.as_deref(), unread: Some(report), ..Terms::OWN };
        let streams = |command: &mut Command| {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            Ok(())
        };
        Supervised::start(&command, terms, streams).map(Self)
    }

    pub(crate) fn streams(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.0.stdout(), self.0.stderr())
    }

    /// `None` if the test still runs after this time. The state next to `report` has its stack then.
    pub(crate) fn wait(
        &mut self,
        timeout: Duration,
        report: &Path,
    ) -> std::io::Result<Option<ExitStatus>> {
        let status = self.0.wait(timeout)?;
        if status.is_none() {
            self.0.ask_for_stack(report);
        }
        Ok(status)
    }
}

/// Undoes an ignored SIGCHLD that a daemon or a shell (`trap "" CHLD`) has passed on. The kernel
/// would reap the children of this process and of the supervisor, whose exit status would be lost.
fn keep_ended_children() {
    let mut reaction = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null pointer leaves the reaction as it is, and `reaction` is a valid pointer for
    // the call, which initializes it if it succeeds. The second call takes numbers.
    unsafe {
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), reaction.as_mut_ptr()) == 0
            && reaction.assume_init().sa_sigaction == libc::SIG_IGN
        {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// The time for which this thread waited for a processor; `None` if the system does not report it.
pub(crate) fn waited() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    // The first number is the time on a processor.
    let nanoseconds = text.split_whitespace().nth(1)?;
    Some(Duration::from_nanos(nanoseconds.parse().ok()?))
}

/// The text with the free memory of the host.
pub(crate) fn memory_of_host() -> Option<String> {
    fs::read_to_string("/proc/meminfo").ok()
}

/// The most bytes of this process's container, and those that it has taken.
pub(crate) fn memory_of_container() -> Option<(u64, u64)> {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // A container without a limit has the word `max` there, which is not a number.
    number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"))
}

/// The file with the memory of this process.
pub(crate) fn open_status() -> Option<File> {
    File::open("/proc/self/status").ok()
}

/// The text of the mappings of this process; empty if it cannot be read.
pub(crate) fn mappings() -> String {
    read("/proc/self/maps")
}

/// The same with the resident part of each, which takes longer.
pub(crate) fn mappings_with_residents() -> String {
    read("/proc/self/smaps")
}

fn read(path: &str) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
