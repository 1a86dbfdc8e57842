//! A memory test under a plain test harness: starts a child process for the test, waits for it, and
//! fails in the way that the harness expects.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use memcheck_core::device::Family;
use memcheck_core::input;
use memcheck_core::judgement::baseline::Baseline;
use memcheck_core::judgement::finding::{self, Code};
use memcheck_core::judgement::location::Roots;
use memcheck_core::judgement::snapshot::remove_pending;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::cargo_lock;
use memcheck_core::measurement::record::Outcome;
use memcheck_core::presentation::text::{Much, lines, unknown_reads_note};
use memcheck_core::request::config::{Config, DEFAULT_THREADS};
use memcheck_core::request::variables;
use memcheck_core::runs::capture::{STREAM, StreamCapture};
use memcheck_core::runs::explain::{Explain, Further, RunPlan, Stage, further};
use memcheck_core::runs::process_end::{self, End, ExpectedTest, Judged, Written};
use memcheck_core::wire::protocol::{self, Job, Report};
use memcheck_symbols::Symbols;

use super::harness::{not_run, or_fail};
use super::{ordinary, relations, settings};
use crate::description::Description;
use crate::{os, snapshot};

/// Runs the test in a child process.
///
/// # Panics
/// If the test fails, with its findings. A `#[should_panic]` test that is within its limits panics
/// with the message of its body.
pub(super) fn run(description: &'static Description) {
    or_fail(settings::check_names());
    let workspace = description.workspace();
    let config = or_fail(settings::configuration(workspace));
    let (ci, explain) = (or_fail(settings::ci()), or_fail(settings::explain()));
    let elsewhere = settings::baselines(workspace, &config);
    let roots = Roots::new(workspace, elsewhere.as_deref());
    or_fail(snapshot::list_referenced(|| baselines(description, &config, roots)));
    let device = description.device_on(&or_fail(settings::device()));
    let family = device.family().unwrap_or(Family::Cpu);
    if !description.need.admits(family) {
        return not_run(description, &device);
    }
    let mut limits = or_fail(settings::limits(description, family, &config));
    ordinary::adapt(&mut limits);
    relations::needs(description, &limits, family, roots)
        .unwrap_or_else(|error| panic!("memcheck: {error}"));

    let folder = tempfile::Builder::new()
        .prefix("memcheck-")
        .tempdir()
        .unwrap_or_else(|error| panic!("memcheck: a temporary folder cannot be created: {error}"));
    let job = Job {
        version: protocol::VERSION,
        test: description.path(),
        report: folder.path().join("report.json"),
        progress: None,
        device,
        limits,
        levels: config.levels.clone(),
        ci,
        workspace: workspace.to_owned(),
        baselines: roots.elsewhere().map(Path::to_owned),
        compiled_in: None,
        candle: candle_version(workspace),
        features: None,
        follow: explain.first().follow,
        reach: explain.first().reach,
        expected: None,
        case: Default::default(),
        parent: Some(std::process::id()),
        alone: true,
        live: false,
        supervised: false,
        own_subscriber: false,
    };
    let timeout = job.limits.timeout.value;
    let threads = config.threads.unwrap_or(DEFAULT_THREADS);
    let run = |job: &Job| {
        let ended = start(job, threads).and_then(|child| wait(child, timeout));
        ended.unwrap_or_else(|error| {
            panic!("memcheck: the process of the test cannot be started: {error}")
        })
    };
    conclude(description, &measured(&job, (family, timeout), explain, run));
}

/// The baselines of a test and of its laws on all devices, although this process runs only one.
fn baselines(description: &Description, config: &Config, roots: Roots<'_>) -> Vec<PathBuf> {
    let of = |family| {
        let limits = settings::limits(description, family, config).ok();
        let needs = |limits| relations::needs(description, &limits, family, roots).ok();
        let law = limits.and_then(needs).flatten().and_then(|needs| needs.law);
        law.into_iter().chain([snapshot::path(description, roots, family)])
    };
    [Family::Cpu, Family::Cuda].into_iter().flat_map(of).collect()
}

/// Runs the test, and again for each stage that its report needs.
fn measured(
    job: &Job,
    (family, timeout): (Family, Duration),
    explain: Explain,
    run: impl Fn(&Job) -> Ended,
) -> Judged {
    let level =
        |code: Code| job.levels.get(&code).copied().unwrap_or_else(|| code.default_level(job.ci));
    let judge = |job: &Job, ended: &Ended| {
        let end = ended.status.map_or(End::TimedOut(timeout), End::Exited);
        let expected = ExpectedTest { test: &job.test, family };
        let mut judged = process_end::judge(&end, written(job), expected, level);
        if let Some(report) = judged.report.as_mut().filter(|it| it.record.has_unnamed_lines()) {
            let mut symbols = Symbols::open(&os::executable());
            report.record.name_lines(|call| symbols.frames(call));
        }
        judged
    };
    let ended = run(job);
    print!("{}", ended.stdout);
    eprint!("{}", ended.stderr);
    let judged = judge(job, &ended);
    let mut number = 0;
    let run = |_, RunPlan { follow, reach, expected }| {
        number += 1;
        let report = job.report.with_file_name(format!("again-{number}.json"));
        let again = Job { follow, reach, expected, report, ..job.clone() };
        let judged = judge(&again, &run(&again));
        match judged.report {
            Some(report) => Further::Ended(Some(Box::new(report))),
            None => Further::Lost(judged.verdict.findings),
        }
    };
    let baseline = |report: &Report| match &report.snapshot {
        Some(path) => snapshot::load(path),
        None => Baseline::Off,
    };
    let judged = further(judged, explain, &Stage::ALL, run, baseline, level);
    if let Some(pending) = &judged.obsolete {
        let _ = remove_pending(pending);
    }
    judged
}

/// The report of the process of `job`, or the reason why there is none.
fn written(job: &Job) -> Written {
    Written::read(&job.report).unwrap_or_else(|error| {
        Written::Unsound(format!("the record of the test cannot be read: {error}"))
    })
}

fn start(job: &Job, threads: u32) -> std::io::Result<Child> {
    let mut command = os::own_executable();
    command
        .args([&job.test, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"])
        .env(variables::JOB, serde_json::to_string(job)?)
        // Without it an assertion of insta in the body starts cargo, whose answer would be counted.
        .env("INSTA_WORKSPACE_ROOT", &job.workspace)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if std::env::var_os(variables::RAYON_NUM_THREADS.name).is_none() {
        command.env(variables::RAYON_NUM_THREADS.name, threads.to_string());
    }
    os::start(&mut command)
}

struct Ended {
    /// `None` if the process was killed because of its time-out.
    status: Option<std::process::ExitStatus>,
    stdout: String,
    stderr: String,
}

/// How long a pipe is read after the process has ended. A limit is needed because a descendant in
/// another process group can hold the pipe open forever.
const PATIENCE: Duration = Duration::from_secs(2);

fn wait(mut child: Child, timeout: Duration) -> std::io::Result<Ended> {
    let stdout = PipeReader::start(child.stdout.take());
    let stderr = PipeReader::start(child.stderr.take());
    let status = os::end(&mut child, timeout, PATIENCE)?;
    let patience = Instant::now() + PATIENCE;
    Ok(Ended { status, stdout: stdout.text(patience), stderr: stderr.text(patience) })
}

/// Reads a pipe on another thread, with bounded memory.
struct PipeReader {
    kept: Arc<Mutex<StreamCapture>>,
    ended: Receiver<()>,
}

impl PipeReader {
    fn start(pipe: Option<impl Read + Send + 'static>) -> Self {
        let kept = Arc::new(Mutex::new(StreamCapture::new(STREAM)));
        let (sender, ended) = std::sync::mpsc::channel();
        let to = Arc::clone(&kept);
        std::thread::spawn(move || {
            let mut piece = [0u8; 8192];
            if let Some(mut pipe) = pipe {
                while let Ok(length @ 1..) = pipe.read(&mut piece) {
                    to.lock().expect("no reader panics").add(&piece[..length]);
                }
            }
            let _ = sender.send(());
        });
        Self { kept, ended }
    }

    /// The text that was read until the pipe ended or `patience` was reached.
    fn text(&self, patience: Instant) -> String {
        let _ = self.ended.recv_timeout(patience.saturating_duration_since(Instant::now()));
        self.kept.lock().expect("no reader panics").text()
    }
}

fn conclude(description: &Description, judged: &Judged) {
    let text = findings(judged);
    match judged.verdict.status {
        Status::Passed | Status::Ignored => {
            eprint!("{text}");
            let outcome = judged.report.as_ref().map(|report| &report.record.outcome);
            if let Some(Outcome::Panicked { message }) = outcome {
                panic!("{message}");
            }
        }
        Status::Failed | Status::NotMeasured | Status::NeedsReview => fail(description, &text),
    }
}

/// The lines of each finding, of figures that differ between runs, and of reads of unknown values,
/// as the command prints them.
fn findings(judged: &Judged) -> String {
    let findings = &judged.verdict.findings;
    let record = judged.report.as_ref().map(|report| &report.record);
    let repeats =
        record.and_then(|record| record.repeats.as_ref()?.note(&finding::reported(findings)));
    let reads = record.and_then(|record| unknown_reads_note(record.values.as_ref()?, findings));
    let notes = repeats.into_iter().chain(reads).map(|note| format!("note: {note}"));
    let lines = findings.iter().flat_map(|finding| lines(finding, Much::Few));
    lines.chain(notes).map(|line| line + "\n").collect()
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
/// workspace; `none` without the feature `candle`, as in the command.
fn candle_version(workspace: &Path) -> String {
    if !cfg!(feature = "candle") {
        return "none".to_owned();
    }
    let lock = workspace
        .ancestors()
        .find_map(|folder| input::read_text(&folder.join("Cargo.lock"), input::LOCK_FILE).ok());
    let version = lock.and_then(|lock| cargo_lock::candle(&lock, env!("CARGO_PKG_VERSION")));
    version.unwrap_or_else(|| "unknown".to_owned())
}
