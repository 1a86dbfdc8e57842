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
//! with the test if the harness ends or asks for it with [`parent::PARENT_ENDED`]. If the harness
//! has ended, it removes the report, which nobody will read. It then ends as the test did. Under
//! `cargo memcheck` the command has a supervisor of its own.
//!
//! A process is killed only while its number is known to be its own: only this process reaps it.

use std::os::unix::process::{CommandExt, ExitStatusExt, parent_id};
use std::path::Path;
use std::process::ExitStatus;

use memcheck_core::request::variables;
use memcheck_core::runs::descendants;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::Job;

use super::{own_executable, parent};

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
    let of_test = Job { parent: Some(std::process::id()), supervised: true, ..job.clone() };
    let child = own_executable()
        .args(std::env::args_os().skip(1))
        .env(variables::JOB, serde_json::to_string(&of_test)?)
        .process_group(0)
        .spawn()?;
    let test = i32::try_from(child.id()).map_err(std::io::Error::other)?;
    let mut status = None;
    let mut harness_ended = false;
    while status.is_none() {
        match parent::wait_for(&signals) {
            parent::Signal::Asked => break,
            parent::Signal::ParentEnded => {
                harness_ended = true;
                break;
            }
            parent::Signal::Other => {}
        }
        // One signal can stand for several children.
        while let Reaped::Child(ended, raw) = reap() {
            if ended == test {
                status = Some(ExitStatus::from_raw(raw));
            }
        }
    }
    kill_descendants();
    if harness_ended || job.parent.is_some_and(|harness| parent_id() != harness) {
        remove_report(&job.report);
    }
    Ok(status)
}

/// Removes a report that no harness will read, and its folder if nothing else is in it.
fn remove_report(report: &Path) {
    let _ = std::fs::remove_file(report);
    if let Some(folder) = report.parent() {
        let _ = std::fs::remove_dir(folder);
    }
}

/// Descendants whose parents end become children of this process.
fn adopt() {
    // SAFETY: this option takes a number and does not access memory.
    let adopts = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) };
    if adopts != 0 {
        eprintln!("memcheck: processes that leave the session of the test may outlive it");
    }
}

enum Reaped {
    /// The number and the status of a child that has ended.
    Child(i32, i32),
    NoneHasEnded,
    NoneIsLeft,
}

fn reap() -> Reaped {
    let mut status = 0;
    // SAFETY: `status` is a valid pointer for the call, which only writes to it.
    match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
        0 => Reaped::NoneHasEnded,
        ended if ended > 0 => Reaped::Child(ended, status),
        _ => Reaped::NoneIsLeft,
    }
}

fn kill_descendants() {
    let kill = |child| {
        // SAFETY: the call sends a signal and does not access memory of this process. The child is
        // not reaped, so that the number is its own.
        unsafe { libc::kill(child, libc::SIGKILL) };
        true
    };
    descendants::kill_all(kill, || {
        loop {
            match reap() {
                Reaped::Child(..) => {}
                Reaped::NoneHasEnded => return false,
                Reaped::NoneIsLeft => return true,
            }
        }
    });
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
