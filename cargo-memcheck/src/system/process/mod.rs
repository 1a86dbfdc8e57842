//! Starts a child process in its own process group, watches it, and ends the group. A launcher
//! starts the test process elsewhere: file descriptors are not passed on to the test, the test can
//! start later than the launcher, and only the launcher can end it.

mod output;
mod progress;
mod signals;

use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use memcheck_core::runs::process::End;
use memcheck_core::wire::protocol::Progress;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use wait_timeout::ChildExt;

use output::Collector;
use progress::Tail;

pub(crate) use output::Output;
pub(crate) use signals::{INTERRUPTED, Interrupt};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Capture {
    /// That of failed tests is printed.
    #[default]
    Kept,
    Shown,
    /// The stdout of a bench is its result.
    None,
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// The pipe for the child's progress.
pub(crate) const PROGRESS_PATH: &str = "/dev/fd/3";
const PROGRESS_FD: i32 = 3;
/// The interval at which a wait checks for a signal.
const LOOK_UP: Duration = Duration::from_millis(100);
/// For the rest of the pipes after the child has ended.
const DRAIN: Duration = Duration::from_secs(2);
/// For a launcher to end its job after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy)]
pub(crate) enum ProcessKind<'a> {
    Own,
    /// The file of the progress must exist and be empty. The time-out counts from the first write
    /// to it.
    Launcher(&'a Path),
    /// Without progress. The process creates the file when it begins, and the time-out counts from
    /// that moment.
    SilentLauncher(Option<&'a Path>),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch<'a> {
    pub(crate) kind: ProcessKind<'a>,
    pub(crate) timeout: Duration,
    pub(crate) capture: Capture,
    pub(crate) interrupt: &'a Interrupt,
}

#[derive(Debug)]
pub(crate) struct ProcessResult {
    /// `None` if this process killed the child because the run was interrupted.
    pub(crate) end: Option<End>,
    /// Behind a launcher the process can begin late or never.
    pub(crate) began: bool,
    pub(crate) output: Output,
    pub(crate) duration: Duration,
}

fn kill_group(group: u32) {
    if let Ok(group) = i32::try_from(group) {
        // The call fails if the group has already ended, which is fine.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}

/// Waits so that the launcher can cancel its job, because a signal would not reach a job on another
/// machine.
fn ask_to_end(launcher: &mut Child) -> std::io::Result<()> {
    if let Ok(id) = i32::try_from(launcher.id()) {
        // The signal goes to the launcher alone because it must end its children itself.
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    }
    launcher.wait_timeout(GRACE).map(drop)
}

enum ProgressSource<'a> {
    Pipe,
    File(Tail),
    Mark(&'a Path),
    None,
}

impl ProgressSource<'_> {
    fn has_begun(&self) -> bool {
        match self {
            Self::Pipe | Self::None => true,
            Self::File(tail) => tail.has_begun(),
            Self::Mark(file) => file.exists(),
        }
    }
}

fn redirect(command: &mut Command, capture: Capture) -> std::io::Result<()> {
    match capture {
        Capture::Shown => {
            // Both streams go to stderr because stdout is reserved for results.
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

/// The time-out counts from the process's begin. `None` if the run was interrupted.
fn wait(
    child: &mut Child,
    source: &ProgressSource<'_>,
    watch: &Watch<'_>,
) -> std::io::Result<Option<End>> {
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

pub(crate) fn run(
    mut command: Command,
    watch: Watch<'_>,
    on_progress: impl Fn(Progress) + Send + 'static,
) -> std::io::Result<ProcessResult> {
    command.stdin(Stdio::null()).process_group(0);
    redirect(&mut command, watch.capture)?;
    let source = match watch.kind {
        ProcessKind::Own => {
            let (from_child, to_us) = std::io::pipe()?;
            let mapping = FdMapping { parent_fd: to_us.into(), child_fd: PROGRESS_FD };
            command.fd_mappings(vec![mapping]).map_err(std::io::Error::other)?;
            progress::read(from_child, on_progress);
            ProgressSource::Pipe
        }
        ProcessKind::Launcher(file) => ProgressSource::File(Tail::start(file, on_progress)?),
        ProcessKind::SilentLauncher(Some(mark)) => ProgressSource::Mark(mark),
        ProcessKind::SilentLauncher(None) => ProgressSource::None,
    };
    let launched = Instant::now();
    let mut child = command.spawn()?;
    // The command owns this process's copy of the pipe's write end. It must be dropped so that the
    // reader sees the end of the pipe.
    drop(command);
    let group = child.id();
    let stdout = Collector::start(child.stdout.take());
    let stderr = Collector::start(child.stderr.take());
    let end = wait(&mut child, &source, &watch)?;
    let duration = launched.elapsed();
    let is_over = matches!(end, Some(End::Exited(_)));
    if !is_over && !matches!(watch.kind, ProcessKind::Own) {
        ask_to_end(&mut child)?;
    }
    // The group is also killed after a regular end, because processes that the test started must
    // not outlive it.
    kill_group(group);
    child.wait()?;
    let output = Output { stdout: stdout.finish(DRAIN), stderr: stderr.finish(DRAIN) };
    let began = match source {
        ProgressSource::File(tail) => tail.finish(),
        ProgressSource::Mark(file) => file.exists(),
        ProgressSource::Pipe | ProgressSource::None => true,
    };
    Ok(ProcessResult { end, began, output, duration })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::sync::mpsc;

    fn sh(script: &str, timeout: Duration) -> ProcessResult {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, own(timeout, &Interrupt::default()), |_| {}).unwrap()
    }

    fn own(timeout: Duration, interrupt: &Interrupt) -> Watch<'_> {
        Watch { kind: ProcessKind::Own, timeout, capture: Capture::Kept, interrupt }
    }

    fn launcher(script: &str, timeout: Duration, interrupt: &Interrupt) -> ProcessResult {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("progress");
        std::fs::write(&file, "").unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(&file).current_dir(folder.path());
        let kind = ProcessKind::Launcher(&file);
        run(command, Watch { kind, ..own(timeout, interrupt) }, |_| {}).unwrap()
    }

    #[test]
    fn the_output_and_the_exit_status_of_a_child_are_stored() {
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
    fn a_grandchild_that_survives_does_not_delay_the_run() {
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
    fn waiting_in_a_queue_does_not_count_for_the_time_limit() {
        let timeout = Duration::from_millis(300);
        let queued = launcher("sleep 1; exit 3", timeout, &Interrupt::default());
        assert!(matches!(queued.end, Some(End::Exited(status)) if status.code() == Some(3)));
        assert!(!queued.began);
        let begun = launcher(&format!("{BEGIN} exec sleep 60"), timeout, &Interrupt::default());
        assert_eq!((begun.end, begun.began), (Some(End::TimedOut(timeout)), true));
    }

    #[test]
    fn a_launcher_is_asked_before_it_is_killed() {
        let script = "trap 'echo canceled; exit 0' TERM; sleep 60 & wait";
        let timeout = Duration::from_millis(300);
        let asked = launcher(&format!("{BEGIN} {script}"), timeout, &Interrupt::default());
        assert_eq!(asked.output.stdout, "canceled\n");
        let interrupt = Interrupt::default();
        let later = interrupt.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            later.set();
        });
        let interrupted = launcher(script, Duration::from_secs(60), &interrupt);
        assert_eq!((interrupted.end, interrupted.output.stdout.as_str()), (None, "canceled\n"));
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
