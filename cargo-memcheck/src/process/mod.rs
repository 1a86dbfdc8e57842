//! A child process in a group of its own: started, watched, and ended.
//!
//! A launcher in its place is another matter: descriptors end at it, the test
//! begins when it lets it, and only it can end what it has started elsewhere.

mod output;
mod progress;
mod signals;

use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use memcheck_core::process::End;
use memcheck_core::protocol::Progress;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use wait_timeout::ChildExt;

use output::Collector;
use progress::Tail;

use crate::options::Capture;

pub(crate) use output::Output;
pub(crate) use signals::{INTERRUPTED, Interrupt};

/// Where the child finds the pipe for its progress.
pub(crate) const PROGRESS_PATH: &str = "/dev/fd/3";
const PROGRESS_FD: i32 = 3;
/// How often a wait looks up for a signal.
const LOOK_UP: Duration = Duration::from_millis(100);
/// How long what is left in the pipes is waited for, once the child is gone.
const DRAIN: Duration = Duration::from_secs(2);
/// How long a launcher that was asked to end may take to end what it started.
const GRACE: Duration = Duration::from_secs(10);

/// What the child is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'a> {
    /// The process that is meant.
    Own,
    /// A launcher of a process whose progress comes in this file, which is
    /// there and empty; the time-out counts from the first line in it.
    Launcher(&'a Path),
    /// A launcher of a process that tells no progress. Where it makes this file
    /// when it begins, the time-out counts from then.
    SilentLauncher(Option<&'a Path>),
}

/// How a child is watched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch<'a> {
    /// What it is.
    pub(crate) kind: Kind<'a>,
    /// How long it may run.
    pub(crate) timeout: Duration,
    /// What happens to its output.
    pub(crate) capture: Capture,
    /// What ends it before.
    pub(crate) interrupt: &'a Interrupt,
}

/// What is known of a child that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: the run was interrupted, and it was killed.
    pub(crate) end: Option<End>,
    /// Whether the process that is meant was seen to begin.
    pub(crate) began: bool,
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

/// Asks a launcher to end, and gives it time to cancel its job: a job that it
/// runs on another machine no signal of ours would reach.
fn ask_to_end(launcher: &mut Child) -> std::io::Result<()> {
    if let Ok(id) = i32::try_from(launcher.id()) {
        // The launcher alone: its children are its own to end.
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    }
    launcher.wait_timeout(GRACE).map(drop)
}

/// Where progress comes from.
enum Source<'a> {
    Pipe,
    File(Tail),
    Mark(&'a Path),
    None,
}

impl Source<'_> {
    /// Whether the process that is meant has begun, as far as it can be told.
    fn has_begun(&self) -> bool {
        match self {
            Self::Pipe | Self::None => true,
            Self::File(tail) => tail.has_begun(),
            Self::Mark(file) => file.exists(),
        }
    }
}

/// Puts the output of `command` where it belongs.
fn redirect(command: &mut Command, capture: Capture) -> std::io::Result<()> {
    match capture {
        Capture::Shown => {
            // Both to stderr: stdout is for results.
            let stderr = || std::io::stderr().as_fd().try_clone_to_owned();
            command.stdout(stderr()?).stderr(stderr()?);
        }
        Capture::Kept => {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        Capture::None => {}
    }
    Ok(())
}

/// Waits for the end of `child`, for the time-out from when it has begun, or for
/// an interrupt: then there is none.
fn wait(child: &mut Child, source: &Source<'_>, watch: &Watch<'_>) -> std::io::Result<Option<End>> {
    let mut begun = None;
    loop {
        if watch.interrupt.is_set() {
            return Ok(None);
        }
        if begun.is_none() && source.has_begun() {
            begun = Some(Instant::now());
        }
        let left = begun.map_or(LOOK_UP, |begun| watch.timeout.saturating_sub(begun.elapsed()));
        if left.is_zero() {
            return Ok(Some(End::TimedOut(watch.timeout)));
        }
        if let Some(status) = child.wait_timeout(left.min(LOOK_UP))? {
            return Ok(Some(End::Exited(status)));
        }
    }
}

/// Runs `command` to its end, or to the time-out, or until the run is interrupted.
pub(crate) fn run(
    mut command: Command,
    watch: Watch<'_>,
    on_progress: impl Fn(Progress) + Send + 'static,
) -> std::io::Result<Ended> {
    command.stdin(Stdio::null()).process_group(0);
    redirect(&mut command, watch.capture)?;
    let source = match watch.kind {
        Kind::Own => {
            let (from_child, to_us) = std::io::pipe()?;
            let mapping = FdMapping { parent_fd: to_us.into(), child_fd: PROGRESS_FD };
            command.fd_mappings(vec![mapping]).map_err(std::io::Error::other)?;
            progress::read(from_child, on_progress);
            Source::Pipe
        }
        Kind::Launcher(file) => Source::File(Tail::start(file, on_progress)?),
        Kind::SilentLauncher(Some(mark)) => Source::Mark(mark),
        Kind::SilentLauncher(None) => Source::None,
    };
    let launched = Instant::now();
    let mut child = command.spawn()?;
    // Our end of the progress pipe lives in the command.
    drop(command);
    let group = child.id();
    let stdout = Collector::start(child.stdout.take());
    let stderr = Collector::start(child.stderr.take());
    let end = wait(&mut child, &source, &watch)?;
    let duration = launched.elapsed();
    let is_over = matches!(end, Some(End::Exited(_)));
    if !is_over && !matches!(watch.kind, Kind::Own) {
        ask_to_end(&mut child)?;
    }
    // Also after a regular end: what the test started does not outlive it.
    kill_group(group);
    child.wait()?;
    let output = Output { stdout: stdout.finish(DRAIN), stderr: stderr.finish(DRAIN) };
    let began = match source {
        Source::File(tail) => tail.finish(),
        Source::Mark(file) => file.exists(),
        Source::Pipe | Source::None => true,
    };
    Ok(Ended { end, began, output, duration })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::sync::mpsc;

    fn sh(script: &str, timeout: Duration) -> Ended {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, own(timeout, &Interrupt::default()), |_| {}).unwrap()
    }

    fn own(timeout: Duration, interrupt: &Interrupt) -> Watch<'_> {
        Watch { kind: Kind::Own, timeout, capture: Capture::Kept, interrupt }
    }

    /// A launcher, and the folder of the file of its progress, which is `$1` of the script.
    fn launcher(script: &str, timeout: Duration, interrupt: &Interrupt) -> Ended {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("progress");
        std::fs::write(&file, "").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(&file).current_dir(folder.path());
        let kind = Kind::Launcher(&file);
        run(command, Watch { kind, ..own(timeout, interrupt) }, |_| {}).unwrap()
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
        run(command, own(Duration::from_secs(20), &Interrupt::default()), on_progress).unwrap();
        let progress = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(progress, Progress { iteration: 3, of: 12, live: 4096 });
    }

    #[test]
    fn an_interrupt_ends_the_child_without_a_verdict() {
        let interrupt = Interrupt::default();
        interrupt.set();
        let mut command = Command::new("sleep");
        command.arg("60");
        let ended = run(command, own(Duration::from_secs(60), &interrupt), |_| {}).unwrap();
        assert_eq!(ended.end, None);
    }

    const BEGIN: &str = r#"echo '{"iteration":0,"of":12,"live":0}' >> "$1"; "#;

    #[test]
    fn what_waits_in_a_queue_does_not_run_out_of_time() {
        let timeout = Duration::from_millis(300);
        let queued = launcher("sleep 1; exit 3", timeout, &Interrupt::default());
        assert!(matches!(queued.end, Some(End::Exited(status)) if status.code() == Some(3)));
        assert!(!queued.began);
        let begun = launcher(&format!("{BEGIN} exec sleep 60"), timeout, &Interrupt::default());
        assert_eq!((begun.end, begun.began), (Some(End::TimedOut(timeout)), true));
    }

    #[test]
    fn a_launcher_is_asked_before_it_is_killed() {
        let script = "trap 'echo cancelled; exit 0' TERM; sleep 60 & wait";
        let timeout = Duration::from_millis(300);
        let asked = launcher(&format!("{BEGIN} {script}"), timeout, &Interrupt::default());
        assert_eq!(asked.output.stdout, "cancelled\n");
        let interrupt = Interrupt::default();
        let later = interrupt.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            later.set();
        });
        let interrupted = launcher(script, Duration::from_secs(60), &interrupt);
        assert_eq!((interrupted.end, interrupted.output.stdout.as_str()), (None, "cancelled\n"));
    }

    #[test]
    fn a_launcher_that_does_not_want_to_end_is_killed_with_its_children() {
        let started = Instant::now();
        let script = format!("{BEGIN} trap '' TERM; echo stubborn; sleep 60");
        let timeout = Duration::from_millis(300);
        let ended = launcher(&script, timeout, &Interrupt::default());
        assert_eq!(ended.end, Some(End::TimedOut(timeout)));
        assert_eq!(ended.output.stdout, "stubborn\n");
        assert!((GRACE..GRACE * 3).contains(&started.elapsed()));
    }
}
