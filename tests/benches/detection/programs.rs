//! Runs the programs. The scenarios run through `cargo memcheck`. The random programs run as
//! processes of this benchmark, because starting the command for each of them would take too long.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context, ensure};
use memcheck_conduct::names::Names;
use memcheck_conduct::snapshots::Snapshots;
use memcheck_conduct::{Conductor, run_of};
use memcheck_core::device::{Family, Request};
use memcheck_core::judgement::baseline::Baseline;
use memcheck_core::judgement::finding::Code;
use memcheck_core::judgement::location::Roots;
use memcheck_core::limits::{Layer, Limits, Source};
use memcheck_core::request::variables;
use memcheck_core::runs::measured::MeasuredTest;
use memcheck_core::runs::plan::{Explain, RunPlan, Stage};
use memcheck_core::runs::process_end::{self, End, Ended, ExpectedTest, Written};
use memcheck_core::size::Size;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::{self, Job};
use memcheck_tests::scenarios::clean;
use serde_json::Value;

/// The path of the memory test that runs a clean program.
pub(crate) const CLEAN: &str = "clean::clean_program";
/// The path of the memory test that runs a clean program with a planted leak.
pub(crate) const PLANTED: &str = "clean::planted_program";

/// The names of the call stacks of all programs.
static NAMES: Names = Names::new();

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace above the package")
}

pub(crate) struct Command {
    path: PathBuf,
}

impl Command {
    pub(crate) fn build() -> anyhow::Result<Self> {
        let built = process::Command::new("cargo")
            .args(["build", "--package", "cargo-memcheck"])
            .current_dir(workspace())
            .status()?;
        ensure!(built.success(), "cargo-memcheck does not build");
        Ok(Self { path: workspace().join("target/debug/cargo-memcheck") })
    }

    /// Runs every test of the target `detection`.
    pub(crate) fn run(&self, device: &str) -> anyhow::Result<Run> {
        let output = process::Command::new(&self.path)
            .args(["memcheck", "run", "--package", "memcheck-tests", "--test", "detection"])
            .args(["--device", device, "--message-format", "json", "--no-ci"])
            .args(["--run-ignored", "all", "--quiet"])
            .env_remove("DETECTION_SEED")
            .current_dir(workspace())
            .stdin(Stdio::null())
            .output()?;
        // The leaks must be found, so the command must exit with 100.
        ensure!(
            output.status.code() == Some(i32::from(exit::FAILED)),
            "cargo memcheck on {device}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let mut tests = BTreeMap::new();
        for line in String::from_utf8(output.stdout)?.lines() {
            let line: Value = serde_json::from_str(line)?;
            if let ("test-finished", Some(test)) =
                (line["type"].as_str().unwrap_or_default(), line["test"].as_str())
            {
                tests.insert(test.to_owned(), line);
            }
        }
        Ok(Run { tests })
    }
}

/// The `test-finished` events of one leg, by test.
pub(crate) struct Run {
    tests: BTreeMap<String, Value>,
}

/// The result of the random program with a given seed.
pub(crate) struct Seed {
    pub(crate) seed: u64,
    /// The findings, or the reason for the missing report.
    pub(crate) findings: Vec<String>,
    /// Bytes per iteration of the finding `leak`, if there is one.
    pub(crate) leak: Option<u64>,
    /// Live bytes after each measured iteration.
    pub(crate) series: Vec<u64>,
}

impl Run {
    pub(crate) fn test(&self, name: &str) -> anyhow::Result<&Value> {
        self.tests.get(name).with_context(|| format!("{name} did not run"))
    }

    /// Runs the programs of all seeds below `seeds`, one at a time on each processor.
    pub(crate) fn seeds(&self, device: &str, test: &str, seeds: u64) -> anyhow::Result<Vec<Seed>> {
        let line = self.test("clean::executable")?;
        let executable =
            PathBuf::from(line["marks"][0]["label"].as_str().context("the test has no mark")?);
        let scratch = tempfile::tempdir()?;
        let (next, ended) = (AtomicU64::new(0), Mutex::new(Vec::new()));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| -> anyhow::Result<()> {
            let work = || -> anyhow::Result<()> {
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    if seed >= seeds {
                        return Ok(());
                    }
                    let report = scratch.path().join(format!("{seed}.json"));
                    let one = run_seed(&executable, (device, test), seed, report)?;
                    ended.lock().expect("not poisoned").push(one);
                }
            };
            let started: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
            started.into_iter().try_for_each(|one| one.join().expect("the worker does not panic"))
        })?;
        let mut ended = ended.into_inner().expect("not poisoned");
        ended.sort_by_key(|one: &Seed| one.seed);
        Ok(ended)
    }
}

/// Runs one program with the same stages as the command.
fn run_seed(
    executable: &Path,
    (device, test): (&str, &str),
    seed: u64,
    report: PathBuf,
) -> anyhow::Result<Seed> {
    let iterations = u32::try_from(clean::iterations(seed))?;
    let device: Request = device.parse()?;
    let family = device.family().unwrap_or(Family::Cpu);
    // The attribute of the test, with the iterations of its program.
    let layer = Layer {
        iterations: Some(iterations),
        max_growth: Some(Size(0)),
        baseline: Some(false),
        ..Layer::default()
    };
    let job = |plan: &RunPlan| Job {
        version: protocol::VERSION,
        test: test.to_owned(),
        report: report.clone(),
        progress: None,
        device: device.clone(),
        limits: Limits::resolve(family, [(Source::Attribute, &layer)]),
        workspace: workspace().to_owned(),
        compiled_in: None,
        candle: String::new(),
        features: None,
        follow: plan.follow.clone(),
        reach: plan.reach,
        case: Default::default(),
        live: false,
        own_subscriber: false,
    };
    let process = |plan: &RunPlan| -> anyhow::Result<Ended> {
        let output = process::Command::new(executable)
            .args([test, "--exact", "--nocapture", "--include-ignored", "--test-threads=1"])
            .env(variables::JOB, serde_json::to_string(&job(plan))?)
            .env(variables::RAYON_NUM_THREADS.name, "1")
            .env("DETECTION_SEED", seed.to_string())
            .stdin(Stdio::null())
            .output()?;
        let written = Written::read(&report)?;
        let _ = std::fs::remove_file(&report);
        let expected = ExpectedTest { test, family, timeout: None };
        Ok(process_end::judge(&End::Exited(output.status), written, None, expected))
    };
    let mut failed = None;
    let mut measured = MeasuredTest::new(Explain::Failed, Stage::ALL);
    let snapshots =
        Snapshots { roots: Roots::new(workspace(), None), pending: None, writes: false };
    let level = |code: Code| code.default_level(false);
    let conductor = Conductor { snapshots, level: &level };
    conductor.run(&mut measured, &Baseline::Off, |stage, plan| {
        let ended = process(&plan).map_err(|error| failed.get_or_insert(error)).ok();
        run_of((stage, plan), ended, |measurement| {
            NAMES.name(measurement, executable, || executable.to_owned())
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let judged = conductor.judge(&measured, &Baseline::Off);
    let Some(record) = judged.record else {
        let findings = judged.verdict.findings.into_iter().map(|finding| finding.message);
        return Ok(Seed { seed, findings: findings.collect(), leak: None, series: Vec::new() });
    };
    let verdict = judged.verdict;
    let leak = verdict.findings.iter().find(|finding| finding.code == Code::Leak);
    let judged = record.judged.first().and_then(|space| record.spaces.get(space));
    Ok(Seed {
        seed,
        // The sum over the call sites of the growth.
        leak: leak.map(|leak| leak.sites.iter().map(|site| site.bytes_per_iteration).sum()),
        series: judged.map(|space| space.allocated.clone()).unwrap_or_default(),
        findings: verdict
            .findings
            .iter()
            .map(|finding| format!("{}: {}", finding.code, finding.message))
            .collect(),
    })
}
