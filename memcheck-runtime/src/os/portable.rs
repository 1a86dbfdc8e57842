//! Systems without an instrument of their own: the allocator counts the blocks of the host, and
//! other memory is not measured.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::Instrument;
use crate::executable::Executable;

/// The allocator has been tested on systems with the C library of Unix.
pub(crate) const INSTRUMENT: Instrument =
    if cfg!(unix) { Instrument::HostOnly } else { Instrument::None };

/// The file that this process runs.
pub(crate) fn executable() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

/// Another process of this executable.
pub(crate) fn own_executable() -> Command {
    Command::new(executable())
}

/// Only Linux has supervisors.
pub(crate) fn supervise_if_named() -> bool {
    false
}

pub(crate) fn take_name() {}

/// The process of a test. The processes that it has started are not ended.
pub(crate) struct UnsupervisedProcess(Child);

pub(crate) use UnsupervisedProcess as TestProcess;

impl UnsupervisedProcess {
    /// Starts this executable again.
    pub(crate) fn start(
        set_up: impl FnOnce(&mut Command),
        _report: &Path,
    ) -> std::io::Result<Self> {
        let mut command = Command::new(executable());
        set_up(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map(Self)
    }

    pub(crate) fn streams(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.0.stdout.take(), self.0.stderr.take())
    }

    /// `None` if the test still runs after this time.
    pub(crate) fn wait(
        &mut self,
        timeout: Duration,
        _: &Path,
    ) -> std::io::Result<Option<ExitStatus>> {
        const PAUSE: Duration = Duration::from_millis(5);
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            let Some(rest) = timeout.checked_sub(began.elapsed()) else { return Ok(None) };
            // The standard library has no wait with a time-out.
            std::thread::sleep(rest.min(PAUSE));
        }
    }
}

impl Drop for UnsupervisedProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        // Otherwise the ended process stays in the table of the system.
        let _ = self.0.wait();
    }
}

/// No file is mapped.
pub(crate) fn map_numbers(_: &Path, _: &[u8], _: usize) -> std::io::Result<&'static [AtomicU64]> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Stacks are not walked here.
pub(crate) fn follow_signals(_: &'static [AtomicU64], _: Executable) {}

/// No parent asks for the stack of a thread.
pub(crate) fn thread_number() -> u64 {
    0
}

/// The time for which this thread waited for a processor: unknown.
pub(crate) fn waited() -> Option<Duration> {
    None
}

/// The text with the free memory of the host: none.
pub(crate) fn memory_of_host() -> Option<String> {
    None
}

/// The most bytes of this process's container, and those that it has taken: unknown.
pub(crate) fn memory_of_container() -> Option<(u64, u64)> {
    None
}

/// The file with the memory of this process: none.
pub(crate) fn open_status() -> Option<File> {
    None
}

/// The text of the mappings of this process: empty.
pub(crate) fn mappings() -> String {
    String::new()
}

/// The same with the resident part of each.
pub(crate) fn mappings_with_residents() -> String {
    String::new()
}
