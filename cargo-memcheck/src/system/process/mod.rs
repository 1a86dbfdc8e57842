//! Starts a child process in its own process group, watches it, and ends the group. A launcher
//! starts the test process elsewhere: file descriptors are not passed on to the test, the test can
//! start later than the launcher, and only the launcher can end it.

mod ignored;
mod inherited;
mod output;
mod progress;
mod short;
mod signals;
mod supervisor;

use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use memcheck_core::runs::process_end::End;
use memcheck_core::wire::protocol::Progress;

use super::printing::SuspendedCommands;
use output::OutputCollector;
use progress::Tail;
use signals::LauncherGuard;

pub(crate) use inherited::{advice, handle_signals, with_whole_stack};
pub(crate) use memcheck_conduct::supervisor::{Membership, Supervised, Terms};
pub(crate) use output::Output;
pub(crate) use short::{ShortRun, short};
pub(crate) use signals::{INTERRUPTED, Interrupt};
pub(crate) use supervisor::run_if_supervisor;

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
/// For a launcher to end its job after SIGTERM, unless a second signal arrives. A unit test waits for
/// all of it.
const GRACE: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 10 });

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
    /// The most bytes that are kept of each stream.
    pub(crate) most: usize,
    pub(crate) interrupt: &'a Interrupt,
    /// The report of a test process, which is asked for its call stack before it is killed because of
    /// the time-out.
    pub(crate) report: Option<&'a Path>,
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
    child: &mut Supervised,
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
        if let Some(status) = child.wait(left.min(LOOK_UP))? {
            return Ok(Some(End::Exited(status)));
        }
    }
}

/// Waits so that the launcher can cancel its job, because a signal would not reach a job on another
/// machine.
fn ask_to_end(launcher: &mut Supervised, interrupt: &Interrupt) -> std::io::Result<()> {
    launcher.terminate();
    while launcher.wait(LOOK_UP)?.is_none() && !interrupt.is_urgent() {}
    Ok(())
}

pub(crate) fn run(
    command: Command,
    watch: Watch<'_>,
    on_progress: impl Fn(Progress) + Send + 'static,
) -> std::io::Result<ProcessResult> {
    let mut to_us = None;
    let (source, grace) = match watch.kind {
        ProcessKind::Own => {
            let (from_child, end) = std::io::pipe()?;
            to_us = Some(end);
            progress::read(from_child, on_progress);
            (ProgressSource::Pipe, None)
        }
        ProcessKind::Launcher(file) => {
            (ProgressSource::File(Tail::start(file, on_progress)?), Some(GRACE))
        }
        ProcessKind::SilentLauncher(Some(mark)) => (ProgressSource::Mark(mark), Some(GRACE)),
        ProcessKind::SilentLauncher(None) => (ProgressSource::None, Some(GRACE)),
    };
    let suspended = match watch.capture {
        // Output that is kept is escaped when it is printed.
        Capture::Shown | Capture::None => SuspendedCommands::begin(),
        Capture::Kept => None,
    };
    let _launcher = grace.map(|_| LauncherGuard::new());
    let launched = Instant::now();
    let terms = Terms { grace, ..Terms::OWN };
    let mut child = Supervised::start(&command, terms, |command| {
        redirect(command, watch.capture)?;
        if let Some(end) = to_us.take() {
            let mapping = FdMapping { parent_fd: end.into(), child_fd: PROGRESS_FD };
            command.fd_mappings(vec![mapping]).map_err(std::io::Error::other)?;
        }
        Ok(())
    })?;
    let stdout = OutputCollector::start(child.stdout(), watch.most);
    let stderr = OutputCollector::start(child.stderr(), watch.most);
    let end = wait(&mut child, &source, &watch)?;
    // Without the time in which a launcher ends its job.
    let duration = launched.elapsed();
    if let (Some(End::TimedOut(_)), Some(report)) = (end, watch.report) {
        child.ask_for_stack(report);
    }
    let is_over = matches!(end, Some(End::Exited(_)));
    if !is_over && grace.is_some() {
        ask_to_end(&mut child, watch.interrupt)?;
    }
    // Also after a regular end, because processes that the test started must not outlive it.
    drop(child);
    // After the child, because its last line can be a command too.
    drop(suspended);
    let output = Output::new(stdout.finish(DRAIN), stderr.finish(DRAIN));
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
    use memcheck_core::runs::capture;
    use std::os::unix::process::ExitStatusExt;
    use std::sync::mpsc;

    fn sh(script: &str, timeout: Duration) -> ProcessResult {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, own(timeout, &Interrupt::default()), |_| {}).unwrap()
    }

    fn own(timeout: Duration, interrupt: &Interrupt) -> Watch<'_> {
        Watch {
            kind: ProcessKind::Own,
            timeout,
            capture: Capture::Kept,
            most: capture::STREAM,
            interrupt,
            report: None,
        }
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
        assert_eq!(progress, Progress { iteration: 3, of: 12, live: 4096, ..Progress::default() });
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
    fn a_second_signal_kills_a_launcher_that_does_not_want_to_end() {
        let interrupt = Interrupt::default();
        let later = interrupt.clone();
        std::thread::spawn(move || {
            for _ in 0..2 {
                std::thread::sleep(Duration::from_millis(500));
                later.set();
            }
        });
        let started = Instant::now();
        let script = "trap '' TERM; echo stubborn; sleep 60; sleep 60";
        let ended = launcher(script, Duration::from_secs(60), &interrupt);
        assert_eq!((ended.end, ended.output.stdout.as_str()), (None, "stubborn\n"));
        assert!(started.elapsed() < GRACE, "{:?}", started.elapsed());
    }

    #[test]
    fn a_long_stream_is_cut_in_the_middle() {
        let script =
            "echo begin; head -c 50000000 /dev/zero | tr '\\0' x; echo end; echo warning >&2";
        let ended = sh(script, Duration::from_secs(60)).output;
        assert!(ended.is_cut && ended.stdout.len() < capture::STREAM + 100);
        assert!(ended.stdout.starts_with("begin\nxx") && ended.stdout.ends_with("xxend\n"));
        assert!(ended.stdout.contains("x\n… 39.7 MiB left out …\nx"), "no mark");
        assert_eq!(ended.stderr, "warning\n");
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
