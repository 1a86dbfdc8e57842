//! A memory test under a plain test harness: conducts its runs, each in a child process, and fails
//! in the way that the harness expects.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use memcheck_conduct::names::Names;
use memcheck_conduct::snapshots::{self, Snapshots};
use memcheck_conduct::{Conductor, Place, run_of};
use memcheck_core::device::Family;
use memcheck_core::input;
use memcheck_core::judgement::baseline::Baseline;
use memcheck_core::judgement::finding::{self, Code};
use memcheck_core::judgement::location::Roots;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::limits::Limits;
use memcheck_core::measurement::cargo_lock;
use memcheck_core::measurement::record::{Outcome, Record};
use memcheck_core::presentation::text::{Much, lines, unknown_reads_note};
use memcheck_core::request::config::{Config, DEFAULT_THREADS};
use memcheck_core::request::variables;
use memcheck_core::runs::capture::{STREAM, StreamCapture};
use memcheck_core::runs::measured::MeasuredTest;
use memcheck_core::runs::plan::{RunPlan, Stage};
use memcheck_core::runs::process_end::{self, End, Ended, ExpectedTest, Written};
use memcheck_core::runs::relations::{
    self, MeasuredRuns, Needs, Other, OtherTests, RelationError, Target, refuse_same_baseline,
};
use memcheck_core::runs::report::Judged;
use memcheck_core::wire::last_state::{self, LastState};
use memcheck_core::wire::protocol::{self, Entry, Job, Measurement};

use super::harness::{not_run, or_fail};
use super::{listing, ordinary, settings};
use crate::description::Description;
use crate::os::{self, TestProcess};
use crate::snapshot;

/// The names of this executable's call stacks, for all its tests.
static NAMES: Names = Names::new();

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
    // Before the test can be refused, because `cargo insta` deletes each baseline that is not
    // listed.
    or_fail(snapshot::list_referenced(|| baselines(description, &config, roots)));
    let device = description.device_on(&or_fail(settings::device()));
    let family = device.family().unwrap_or(Family::Cpu);
    if !description.need.admits(family) {
        return not_run(description, &device);
    }
    let mut limits = or_fail(settings::limits(description, family, &config));
    ordinary::adapt(&mut limits);
    let needs = needs(description, &limits, family, roots)
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
        workspace: workspace.to_owned(),
        compiled_in: None,
        candle: candle_version(workspace),
        features: None,
        follow: Default::default(),
        reach: Default::default(),
        case: Default::default(),
        live: false,
        own_subscriber: false,
    };
    let pending = std::env::var_os("INSTA_PENDING_DIR").filter(|folder| !folder.is_empty());
    let level =
        |code: Code| config.levels.get(&code).copied().unwrap_or_else(|| code.default_level(ci));
    let conductor = Conductor {
        snapshots: Snapshots { roots, pending: pending.as_ref().map(Path::new), writes: !ci },
        level: &level,
    };
    let snapshot = snapshot::path(description, roots, family);
    let baseline = match job.limits.baseline.value {
        true => snapshots::load(&snapshot),
        false => Baseline::Off,
    };
    let threads = config.threads.unwrap_or(DEFAULT_THREADS);
    let mut test = MeasuredTest::new(explain, Stage::ALL);
    let mut number = 0;
    let source = Path::new(description.file);
    let source = source.strip_prefix(workspace).unwrap_or(source);
    let mut run = |stage, plan: RunPlan| {
        let report = job.report.with_file_name(format!("run-{number}.json"));
        let job = Job { follow: plan.follow.clone(), reach: plan.reach, report, ..job.clone() };
        let ended = run_once(&job, (family, threads), number == 0);
        number += 1;
        let test = Some((source, description.line));
        let ended = NAMES.locate(ended, Path::new(""), os::executable, test);
        run_of((stage, plan), Some(ended), |measurement| named(measurement, &baseline))
    };
    conductor.run(&mut test, &baseline, &mut run);
    if let Some(needs) = needs {
        // Only the command runs all cases of a law, and keeps it.
        let needs = &Needs { law: None, ..needs };
        let scaling = &description.scaling();
        let others = OtherTests { needs, scaling, accepted: None, source, runs_of: &runs_of };
        conductor.relate(&mut test, &baseline, &others, &mut run);
    }
    let place = Place { source, line: Some(description.line), snapshot: &snapshot };
    conclude(description, &conductor.conclude(&test, &baseline, Some(place)));
}

/// The other tests of this executable whose figures a test needs. The parent process of a run by
/// the command refuses a limit that names no test in the same way.
fn needs(
    description: &Description,
    limits: &Limits,
    family: Family,
    roots: Roots<'_>,
) -> Result<Option<Needs>, RelationError> {
    let target =
        Target { name: "this test target", tests: &listing::listing().tests, family, roots };
    let test = listing::entry(description);
    if limits.baseline.value {
        let shares = |entry: &&Entry| {
            let keeps = entry.need.admits(family) && entry.attribute.baseline != Some(false);
            keeps && entry.snapshot == test.snapshot
        };
        refuse_same_baseline(target.tests.iter().filter(shares).map(|entry| target.other(entry)))?;
    }
    target.needs(&test, limits, |_| true)
}

/// Each test of a plain harness runs alone, so that the baselines of the other tests replace their
/// measurements.
fn runs_of(other: &Other, record: &Record) -> Result<MeasuredRuns, String> {
    if other.test == record.test {
        return Ok(MeasuredRuns::of(record));
    }
    let baseline = snapshots::load(&other.snapshot);
    relations::standing_in(&baseline, &record.facts).cloned().map(MeasuredRuns::from)
}

/// The record of a measurement of this executable. A plain `cargo test` cannot know which features
/// its command line has switched on, so that it takes those of the baseline.
fn named(measurement: Measurement, baseline: &Baseline) -> Record {
    let mut record = NAMES.name(measurement, Path::new(""), os::executable);
    if let Baseline::Found { facts, .. } = baseline {
        record.facts.features.clone_from(&facts.features);
    }
    record
}

/// Runs the process of one run. The output of the first is that of the test.
fn run_once(job: &Job, (family, threads): (Family, u32), is_first: bool) -> Ended {
    let timeout = job.limits.timeout.value;
    let ended =
        start(job, threads).and_then(|child| wait(child, timeout, &job.report)).unwrap_or_else(
            |error| panic!("memcheck: the process of the test cannot be started: {error}"),
        );
    if is_first {
        // By the macros, because the harness captures only these.
        print!("{}", ended.stdout);
        eprint!("{}", ended.stderr);
    }
    let end = ended.status.map_or(End::TimedOut(timeout), End::Exited);
    let written = Written::read(&job.report).unwrap_or_else(|error| {
        Written::Unsound(format!("the record of the test cannot be read: {error}"))
    });
    let last = LastState::read(&job.report);
    // If the harness is killed, the supervisor removes the last files and the folder.
    let _ = std::fs::remove_file(&job.report);
    let _ = std::fs::remove_file(last_state::path(&job.report));
    let timeout = Some(&job.limits.timeout);
    process_end::judge(&end, written, last, ExpectedTest { test: &job.test, family, timeout })
}

/// The baselines of a test and of its laws on all devices, although this process runs only one.
fn baselines(description: &Description, config: &Config, roots: Roots<'_>) -> Vec<PathBuf> {
    let of = |family| {
        let limits = settings::limits(description, family, config).ok();
        let needs = |limits| needs(description, &limits, family, roots).ok();
        let law = limits.and_then(needs).flatten().and_then(|needs| needs.law);
        law.into_iter().chain([snapshot::path(description, roots, family)])
    };
    [Family::Cpu, Family::Cuda].into_iter().flat_map(of).collect()
}

fn start(job: &Job, threads: u32) -> std::io::Result<TestProcess> {
    let text = serde_json::to_string(job)?;
    let set_up = |command: &mut Command| {
        command
            // The outer harness has decided that the test runs, also if it is ignored.
            .args([&job.test, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"])
            .env(variables::JOB, text)
            // Without it an assertion of insta in the body starts cargo, whose answer would be counted.
            .env("INSTA_WORKSPACE_ROOT", &job.workspace);
        let own = job.limits.threads.value;
        if own.is_some() || std::env::var_os(variables::RAYON_NUM_THREADS.name).is_none() {
            command.env(variables::RAYON_NUM_THREADS.name, own.unwrap_or(threads).to_string());
        }
    };
    TestProcess::start(set_up, &job.report)
}

struct ProcessOutput {
    /// `None` if the process was killed because of its time-out.
    status: Option<std::process::ExitStatus>,
    stdout: String,
    stderr: String,
}

/// How long a pipe is read after the process has ended. A limit is needed because a descendant in
/// another process group can hold the pipe open forever.
const PATIENCE: Duration = Duration::from_secs(2);

fn wait(
    mut process: TestProcess,
    timeout: Duration,
    report: &Path,
) -> std::io::Result<ProcessOutput> {
    let (stdout, stderr) = process.streams();
    let (stdout, stderr) = (PipeReader::start(stdout), PipeReader::start(stderr));
    let status = process.wait(timeout, report)?;
    // Processes that the test started must not outlive it.
    drop(process);
    let patience = Instant::now() + PATIENCE;
    Ok(ProcessOutput { status, stdout: stdout.text(patience), stderr: stderr.text(patience) })
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
        // The thread is not joined, because it may read for ever.
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
    let is_pending = judged.report.as_ref().is_some_and(|report| report.pending.is_some());
    let pending = "hint: `cargo memcheck review` shows the new figures, and accepts them";
    let hint = is_pending.then(|| pending.to_owned());
    let lines = findings.iter().flat_map(|finding| lines(finding, Much::Few));
    lines.chain(hint).chain(notes).map(|line| line + "\n").collect()
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
