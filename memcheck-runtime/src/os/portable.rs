//! Systems without an instrument of their own: the allocator counts the blocks of the host, and
//! other memory is not measured.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use memcheck_core::wire::protocol::Job;

use super::Instrument;

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

/// Only Linux ends a process when its parent ends.
pub(crate) fn tie(_: &Job) {}

pub(crate) fn watch_parent() {}

/// Starts the process of a test.
pub(crate) fn start(command: &mut Command) -> std::io::Result<Child> {
    command.spawn()
}

/// Waits for the process of a test. `None` if its time was over, and it was killed. The processes
/// that it has started are not ended.
pub(crate) fn end(
    child: &mut Child,
    timeout: Duration,
    _patience: Duration,
) -> std::io::Result<Option<ExitStatus>> {
    const PAUSE: Duration = Duration::from_millis(5);
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let Some(rest) = timeout.checked_sub(began.elapsed()) else { break };
        std::thread::sleep(rest.min(PAUSE));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_waited_for_and_killed_after_its_time() {
        let mut quick = start(Command::new("sleep").arg("0")).unwrap();
        let status = end(&mut quick, Duration::from_secs(60), Duration::ZERO).unwrap();
        assert!(status.is_some_and(|status| status.success()));
        let mut slow = start(Command::new("sleep").arg("60")).unwrap();
        assert_eq!(end(&mut slow, Duration::from_millis(50), Duration::ZERO).unwrap(), None);
        assert!(slow.try_wait().unwrap().is_some());
    }
}
