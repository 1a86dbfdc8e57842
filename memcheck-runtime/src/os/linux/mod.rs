//! Linux: a test has a supervisor, and `/proc` has figures.

mod parent;
mod supervisor;

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use memcheck_core::runs::descendants;
use memcheck_core::wire::protocol::Job;

use super::Instrument;

pub(crate) use parent::wait_for_signal as watch_parent;

pub(crate) const INSTRUMENT: Instrument = Instrument::Complete;

/// The file that this process runs, also if another file has its name now.
const EXECUTABLE: &str = "/proc/self/exe";

/// The file that this process runs.
pub(crate) fn executable() -> PathBuf {
    EXECUTABLE.into()
}

/// Another process of this executable, which gets the name of this one as its argument 0. A build
/// can have replaced the file meanwhile, so that its path would start another program.
pub(crate) fn own_executable() -> Command {
    let mut command = Command::new(EXECUTABLE);
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command
}

/// Gives this process the name that the system gives to one that is started by its path, because
/// that of [`own_executable`] is `exe`. The system's log and `ps` print it.
fn take_name() {
    let path = std::env::args_os().next();
    if let Some(name) = path.as_ref().and_then(|path| Path::new(path).file_name()) {
        let _ = fs::write("/proc/self/comm", name.as_encoded_bytes());
    }
}

/// Ties this process to the one that started it for a job, or supervises another one that does the
/// job. Must be called before `main`.
pub(crate) fn tie(job: &Job) {
    take_name();
    match job.parent {
        Some(_) if !job.supervised => supervisor::run(job),
        Some(id) => parent::request_signal(id),
        None => {}
    }
}

/// Starts the process of a test.
pub(crate) fn start(command: &mut Command) -> std::io::Result<Child> {
    parent::keep_ended_children();
    command.process_group(0).spawn()
}

/// Waits for the process of a test, and ends it with all that it started. `None` if its time was
/// over. `patience` is the time that its end may take.
pub(crate) fn end(
    child: &mut Child,
    timeout: Duration,
    patience: Duration,
) -> std::io::Result<Option<ExitStatus>> {
    let is_over = parent::ends_within(child.id(), timeout);
    if !is_over {
        parent::ask_to_end(child.id());
        parent::ends_within(child.id(), descendants::PATIENCE + patience);
    }
    // The supervisor has killed all processes that the test started, unless it was killed itself.
    // The child is reaped later, so that its group cannot be another one of the same number.
    if let Ok(group) = i32::try_from(child.id()) {
        parent::kill_group(group);
    }
    let status = child.wait()?;
    Ok(is_over.then_some(status))
}

/// The time for which this thread waited for a processor; `None` if the system does not report it.
pub(crate) fn waited() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
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
