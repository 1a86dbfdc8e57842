//! A process between the harness and the process of a test, so that no process that a test starts
//! outlives the test, also not one in a session of its own. It is this executable again, and does
//! its work before `main`.
//!
//! ```text
//! harness ── supervisor ── test ── its children, also those in sessions of their own
//! ```
//!
//! The supervisor adopts descendants of the test whose parents have ended
//! (`PR_SET_CHILD_SUBREAPER`). It kills all of them when the test has ended in any way, and together
//! with the test if the harness ends or asks for it with [`parent::PARENT_ENDED`]. It then ends as
//! the test did. Under `cargo memcheck` the command has a supervisor of its own.
//!
//! A process is killed only while its number is known to be its own: only this process reaps it.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use memcheck_core::request::variables;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::Job;

use super::parent;

/// For descendants to end after SIGKILL. One that waits for a device cannot end.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The number of a signal that the kernel sends when a child has ended.
const CHILD_ENDED: i32 = libc::SIGCHLD;

/// Starts the test of `job` and ends this process as the test ends.
pub(super) fn run(job: &Job) -> ! {
    match supervise(job) {
        Ok(status) => end_as(status),
        Err(error) => {
            eprintln!("memcheck: the test's own process: {error}");
            std::process::exit(i32::from(exit::NOT_MEASURED))
        }
    }
}

/// `None` if the harness has ended, or asked for the end of the test.
fn supervise(job: &Job) -> std::io::Result<Option<ExitStatus>> {
    adopt();
    let signals = parent::block(&[parent::PARENT_ENDED, CHILD_ENDED]);
    if let Some(harness) = job.parent {
        parent::request_signal(harness);
    }
    let job = Job { parent: Some(std::process::id()), supervised: true, ..job.clone() };
    let child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(variables::JOB, serde_json::to_string(&job)?)
        .process_group(0)
        .spawn()?;
    let test = i32::try_from(child.id()).map_err(std::io::Error::other)?;
    let mut status = None;
    while status.is_none() {
        if parent::wait_for(&signals) == parent::PARENT_ENDED {
            break;
        }
        // One signal can stand for several children.
        while let Some((ended, raw)) = reap() {
            if ended == test {
                status = Some(ExitStatus::from_raw(raw));
            }
        }
    }
    kill_descendants();
    Ok(status)
}

/// Descendants whose parents end become children of this process.
fn adopt() {
    // SAFETY: this option takes a number and does not access memory.
    let adopts = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) };
    if adopts != 0 {
        eprintln!("memcheck: processes that leave the session of the test may outlive it");
    }
}

/// The number and the status of a child that has ended; `None` if there is none.
fn reap() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: `status` is a valid pointer for the call, which only writes to it.
    let ended = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    (ended > 0).then_some((ended, status))
}

fn kill_descendants() {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let children = children();
        for &child in &children {
            // SAFETY: the call sends a signal and does not access memory of this process. The child
            // is not reaped, so that the number is its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        // The children of the killed processes become children of this one, and the next round
        // kills them.
        while reap().is_some() {}
        if children.is_empty() || Instant::now() >= deadline {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// From the fields of all processes, because the kernel's list of children may be incomplete while
/// children end.
fn children() -> Vec<i32> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |number: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // The name is in parentheses and may contain any character. The state and the parent follow
        // it.
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
        parent == Some(own.as_str())
    };
    numbers.filter(is_child).collect()
}

/// Ends with the exit code of the test, or by the signal that ended it.
fn end_as(status: Option<ExitStatus>) -> ! {
    if let Some(signal) = status.and_then(|status| status.signal()) {
        // The test has written a core dump if the system wants one.
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `none` is a valid pointer for the call, which only reads it. The other two calls
        // take numbers. Without a handler, the signal ends this process.
        unsafe {
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    let code = status.and_then(|status| status.code());
    std::process::exit(code.unwrap_or(i32::from(exit::NOT_MEASURED)))
}
