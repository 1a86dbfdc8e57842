//! A memory test under a plain test harness: starts a child process for the test, waits for it, and
//! fails in the way that the harness expects.

use std::fmt::Display;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use memcheck_core::baseline::Baseline;
use memcheck_core::config::DEFAULT_THREADS;
use memcheck_core::device::{Family, Request};
use memcheck_core::explain::{Explain, Run, Stage};
use memcheck_core::finding::{self, Code};
use memcheck_core::lines::{Much, lines};
use memcheck_core::lock;
use memcheck_core::protocol::{self, Job, Report, Status};
use memcheck_core::record::Outcome;
use memcheck_core::variables;
use wait_timeout::ChildExt;

use super::{across, parent, settings};
use crate::description::Description;
use crate::snapshot;

/// Runs the test in a child process.
///
/// # Panics
/// If the test fails, with its findings. A `#[should_panic]` test that is within its limits panics
/// with the message of its body.
pub(super) fn run(description: &'static Description) {
    let workspace = description.workspace();
    let text = said(settings::config_text(workspace));
    let config = said(settings::parse(text.as_deref()));
    let (ci, explain) = (said(settings::ci()), said(settings::explain()));
    let device = description.device_on(&said(settings::device()));
    let family = device.family().unwrap_or(Family::Cpu);
    if !description.need.admits(family) {
        return not_run(description, &device);
    }
    let limits = said(settings::limits(description, family, &config, &Default::default()));
    across::partner(description, &limits).unwrap_or_else(|error| panic!("memcheck: {error}"));

    let folder = tempfile::Builder::new()
        .prefix("memcheck-")
        .tempdir()
        .unwrap_or_else(|error| panic!("no temporary folder: {error}"));
    let job = Job {
        version: protocol::VERSION,
        test: description.path(),
        report: folder.path().join("report.json"),
        progress: None,
        device,
        flags: Default::default(),
        config: text,
        levels: config.levels.clone(),
        ci,
        workspace: workspace.to_owned(),
        compiled_in: None,
        candle: candle_version(workspace).unwrap_or_else(|| "unknown".to_owned()),
        follow: explain.first().follow,
        reach: explain.first().reach,
        expected: None,
        case: Default::default(),
        parent: Some(std::process::id()),
        alone: true,
        own_subscriber: false,
    };
    let threads = config.threads.unwrap_or(DEFAULT_THREADS);
    let run = |job: &Job| {
        let ended = start(job, threads).and_then(|child| wait(child, limits.timeout.value));
        ended.unwrap_or_else(|error| panic!("the test's own process: {error}"))
    };
    match measured(&job, explain, run) {
        Ok(report) => conclude(description, &report),
        Err(why) => fail(description, &why),
    }
}

/// Returns the value of a setting, or fails the test with the error.
fn said<T, E: Display>(read: Result<T, E>) -> T {
    read.unwrap_or_else(|error| panic!("{error}"))
}

/// Reports that this harness has no device for the test.
fn not_run(description: &Description, device: &Request) {
    println!("memcheck: not run, it needs another device than `{device}`: use `cargo memcheck`");
    if let Some(expected) = description.should_panic {
        panic!("not run on `{device}`, where it would say: {expected}");
    }
}

/// The report of the test, completed by further runs, or the reason why it is missing.
fn measured(job: &Job, explain: Explain, run: impl Fn(&Job) -> Ended) -> Result<Report, String> {
    let ended = run(job);
    print!("{}", ended.stdout);
    eprint!("{}", ended.stderr);
    // Checked before a further run starts, because only the exit status of this process belongs to
    // this report.
    let mut merged = ended.believed(report(job))?;
    let level =
        |code: Code| job.levels.get(&code).copied().unwrap_or_else(|| code.default_level(job.ci));
    for (number, stage) in Stage::ALL.into_iter().enumerate() {
        let Some(Run { follow, reach, expected }) = stage.run(explain, &merged) else { continue };
        let path = job.report.with_file_name(format!("again-{number}.json"));
        let again = Job { follow, reach, expected, report: path, ..job.clone() };
        run(&again);
        let baseline = match &merged.snapshot {
            Some(path) => snapshot::load(path),
            None => Baseline::Off,
        };
        merged = stage.merge(merged, report(&again), &baseline, level);
        // The pending figures are those of one run. They must not be accepted, because other runs
        // measured other figures.
        if merged.verdict.has(Code::Unstable)
            && merged.pending.take().is_some()
            && let Some(path) = &merged.snapshot
        {
            snapshot::discard_pending(&job.workspace, path);
        }
    }
    Ok(merged)
}

/// The report that the process of `job` wrote. `None` if it is missing, incomplete, or of another
/// test or version.
fn report(job: &Job) -> Option<Report> {
    std::fs::read(&job.report)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Report>(&bytes).ok())
        .filter(|report| report.version == protocol::VERSION && report.record.test == job.test)
}

fn start(job: &Job, threads: u32) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args([&job.test, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"])
        .env(variables::JOB, serde_json::to_string(job)?)
        .env("INSTA_WORKSPACE_ROOT", &job.workspace)
        .env("INSTA_UPDATE", if job.ci { "no" } else { "new" })
        .env("INSTA_FORCE_PASS", "1")
        .env("INSTA_OUTPUT", "none")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if std::env::var_os(variables::RAYON_NUM_THREADS.name).is_none() {
        command.env(variables::RAYON_NUM_THREADS.name, threads.to_string());
    }
    command.spawn()
}

struct Ended {
    /// `None` if the process was killed because of its time-out.
    status: Option<std::process::ExitStatus>,
    stdout: String,
    stderr: String,
}

impl Ended {
    /// Returns the report of the process, or an error text if the process timed out, left no
    /// report, or ended in a way that contradicts its report.
    fn believed(&self, report: Option<Report>) -> Result<Report, String> {
        let Some(status) = self.status else {
            return Err("timed-out: the test took longer than its time-out".to_owned());
        };
        let Some(report) = report else {
            return Err(format!("not-measured: the test's process left no report ({status})"));
        };
        let passed = report.verdict.status == Status::Passed;
        if status.signal().is_some() || (passed && !status.success()) {
            let found = findings(&report);
            return Err(format!(
                "crashed: the process ended with {status} after its report\n{found}"
            ));
        }
        Ok(report)
    }
}

/// How long a pipe is read after the process has ended. A limit is needed because a descendant in
/// another process group can hold the pipe open forever.
const PATIENCE: Duration = Duration::from_secs(2);

fn wait(mut child: Child, timeout: Duration) -> std::io::Result<Ended> {
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let status = child.wait_timeout(timeout);
    // Also after a regular end, because processes that the test started must not outlive it.
    if let Ok(group) = i32::try_from(child.id()) {
        parent::kill_group(group);
    }
    let status = status?;
    if status.is_none() {
        child.wait()?;
    }
    let patience = std::time::Instant::now() + PATIENCE;
    Ok(Ended { status, stdout: text(&stdout, patience), stderr: text(&stderr, patience) })
}

/// Reads a pipe in pieces on another thread.
fn drain(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut piece = [0u8; 8192];
        let Some(mut pipe) = pipe else { return };
        while let Ok(length @ 1..) = pipe.read(&mut piece) {
            if sender.send(piece[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The text that was read until the pipe ended or `patience` was reached.
fn text(pieces: &Receiver<Vec<u8>>, patience: std::time::Instant) -> String {
    let mut bytes = Vec::new();
    let left = || patience.saturating_duration_since(std::time::Instant::now());
    while let Ok(piece) = pieces.recv_timeout(left()) {
        bytes.extend(piece);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn conclude(description: &Description, report: &Report) {
    let text = findings(report);
    match report.verdict.status {
        Status::Passed | Status::Ignored => {
            eprint!("{text}");
            if let Outcome::Panicked { message } = &report.record.outcome {
                panic!("{message}");
            }
        }
        Status::Failed | Status::NotMeasured | Status::NeedsReview => fail(description, &text),
    }
}

/// The lines of each finding, and of figures that differ between runs, as the command prints them.
fn findings(report: &Report) -> String {
    let findings = &report.verdict.findings;
    let repeats = report.record.repeats.as_ref();
    let note = repeats.and_then(|repeats| repeats.note(&finding::reported(findings)));
    let lines = findings.iter().flat_map(|finding| lines(finding, Much::Few));
    lines.chain(note.map(|note| format!("note: {note}"))).map(|line| line + "\n").collect()
}

/// Fails the test: by a panic, or, if the harness expects a panic, by returning without one.
fn fail(description: &Description, text: &str) {
    let text = text.trim_end();
    if description.should_panic.is_some() {
        eprintln!("memcheck: {}: {text}", description.path());
    } else {
        panic!("memcheck: {}\n{text}", description.path());
    }
}

/// The version of candle-core that this crate was built with, according to the `Cargo.lock` of the
/// workspace.
fn candle_version(workspace: &Path) -> Option<String> {
    let lock = workspace
        .ancestors()
        .find_map(|folder| std::fs::read_to_string(folder.join("Cargo.lock")).ok())?;
    lock::candle(&lock, env!("CARGO_PKG_VERSION"))
}
