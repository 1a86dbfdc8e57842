//! A child process in a group of its own: started, watched, and ended.

use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use memcheck_core::protocol::Progress;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use wait_timeout::ChildExt;

use super::output::{Collector, Output};
use super::progress;
use super::signals::Interrupt;
use crate::options::Capture;

/// Where the child finds the pipe for its progress.
pub(crate) const PROGRESS_PATH: &str = "/dev/fd/3";
const PROGRESS_FD: i32 = 3;
/// How often a wait looks up for a signal.
const LOOK_UP: Duration = Duration::from_millis(100);
/// How long what is left in the pipes is waited for, once the child is gone.
const DRAIN: Duration = Duration::from_secs(2);

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, or by a signal that was not ours.
    Exited(ExitStatus),
    /// It was killed after this long.
    TimedOut(Duration),
}

/// What is known of a child that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: the run was interrupted, and it was killed.
    pub(crate) end: Option<End>,
    /// What it printed.
    pub(crate) output: Output,
    /// How long it ran.
    pub(crate) duration: Duration,
}

/// Kills every process of a group that is still there.
fn kill_group(group: u32) {
    if let Ok(group) = i32::try_from(group) {
        // Gone already is what is wanted.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}

/// Runs `command` to its end, or to `timeout`, or until the run is interrupted.
pub(crate) fn run(
    mut command: Command,
    timeout: Duration,
    capture: Capture,
    interrupt: &Interrupt,
    on_progress: impl Fn(Progress) + Send + 'static,
) -> std::io::Result<Ended> {
    let (from_child, to_us) = std::io::pipe()?;
    command
        .stdin(Stdio::null())
        .process_group(0)
        .fd_mappings(vec![FdMapping { parent_fd: to_us.into(), child_fd: PROGRESS_FD }])
        .map_err(std::io::Error::other)?;
    match capture {
        Capture::Shown => {
            // Both to stderr: stdout is for results.
            let stderr = || std::io::stderr().as_fd().try_clone_to_owned();
            command.stdout(stderr()?).stderr(stderr()?);
        }
        Capture::Kept => {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
    }
    let started = Instant::now();
    let mut child = command.spawn()?;
    // Our end of the progress pipe lives in the command.
    drop(command);
    let group = child.id();
    progress::read(from_child, on_progress);
    let stdout = Collector::start(child.stdout.take());
    let stderr = Collector::start(child.stderr.take());

    let end = loop {
        if interrupt.is_set() {
            break None;
        }
        let left = timeout.saturating_sub(started.elapsed());
        if left.is_zero() {
            break Some(End::TimedOut(timeout));
        }
        if let Some(status) = child.wait_timeout(left.min(LOOK_UP))? {
            break Some(End::Exited(status));
        }
    };
    let duration = started.elapsed();
    // Also after a regular end: what the test started does not outlive it.
    kill_group(group);
    child.wait()?;
    let output = Output { stdout: stdout.finish(DRAIN), stderr: stderr.finish(DRAIN) };
    Ok(Ended { end, output, duration })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::sync::mpsc;

    fn sh(script: &str, timeout: Duration) -> Ended {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, timeout, Capture::Kept, &Interrupt::default(), |_| {}).unwrap()
    }

    #[test]
    fn what_a_child_prints_and_how_it_ends_is_kept() {
        let ended = sh("echo out; echo err >&2; exit 3", Duration::from_secs(20));
        assert!(matches!(ended.end, Some(End::Exited(status)) if status.code() == Some(3)));
        assert_eq!(
            (ended.output.stdout.as_str(), ended.output.stderr.as_str()),
            ("out\n", "err\n")
        );
        let killed = sh("kill -SEGV $$", Duration::from_secs(20));
        assert!(matches!(killed.end, Some(End::Exited(status)) if status.signal() == Some(11)));
    }

    #[test]
    fn a_child_that_hangs_is_killed_with_its_children() {
        let started = Instant::now();
        let ended = sh("echo before; sleep 60 & sleep 60", Duration::from_millis(200));
        assert_eq!(ended.end, Some(End::TimedOut(Duration::from_millis(200))));
        assert_eq!(ended.output.stdout, "before\n");
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_child_left_behind_does_not_hold_the_run_up() {
        let started = Instant::now();
        let ended = sh("sleep 60 & exit 0", Duration::from_secs(50));
        assert!(matches!(ended.end, Some(End::Exited(_))));
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn progress_comes_through_the_third_descriptor() {
        let (sender, receiver) = mpsc::channel();
        let mut command = Command::new("sh");
        command.args([
            "-c",
            r#"echo '{"iteration":3,"of":12,"live":4096}' > /dev/fd/3; echo junk >&3"#,
        ]);
        let on_progress = move |progress| sender.send(progress).unwrap();
        run(command, Duration::from_secs(20), Capture::Kept, &Interrupt::default(), on_progress)
            .unwrap();
        let progress = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(progress, Progress { iteration: 3, of: 12, live: 4096 });
    }

    #[test]
    fn an_interrupt_ends_the_child_without_a_verdict() {
        let interrupt = Interrupt::default();
        interrupt.set();
        let mut command = Command::new("sleep");
        command.arg("60");
        let ended =
            run(command, Duration::from_secs(60), Capture::Kept, &interrupt, |_| {}).unwrap();
        assert_eq!(ended.end, None);
    }
}
