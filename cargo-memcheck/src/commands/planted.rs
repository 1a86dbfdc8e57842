//! A planted leak, which proves that leaks are found on this machine. A generated package, built
//! with the workspace's own dependencies, has a test that leaks a known number of bytes in every
//! iteration, and a clean twin. Each runs several times, and all figures must be identical.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;

use anyhow::Context;
use cargo_metadata::semver::Version;
use memcheck_core::judgement::baseline::Figures;
use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::judgement::verdict::Status;
use memcheck_core::limits::Layer;
use memcheck_core::measurement::repeats::Repeats;
use memcheck_core::size::Size;
use memcheck_core::space::Space;

use crate::build::generated::Generated;
use crate::build::workspace::{RUNTIME, Workspace};
use crate::discovery::legs;
use crate::discovery::session::Session;
use crate::discovery::task::TestOutcome;
use crate::execution::proof::{
    self, Exactness, FoundLeak, Identity, Proof, ProofEvidence, ProofResult,
};
use crate::execution::run::Runner;
use crate::execution::schedule::{self, RunEvent};
use crate::invocation::cli::{CiFlags, DoctorArgs};
use crate::invocation::options::Flags;
use crate::invocation::values::{CargoOptions, Verbosity};
use crate::system::error::Failure;
use crate::system::printing::eprint_line;
use crate::system::process::Interrupt;

/// Bytes in every iteration.
const LEAK: u64 = 1 << 20;
const ITERATIONS: u32 = 8;
/// Of each test. Their figures must be identical.
const RUNS: usize = 5;
const FIRST_BUILD: &str = "planting a leak: the first build compiles candle once for each kind of \
                           device (CPU, CUDA), which takes some minutes; later builds take seconds";

const SOURCE: &str = r#"//! Written by `cargo memcheck doctor`.
#![cfg(test)]

use candle_core::{DType, Device, Result, Tensor};
use std::sync::Mutex;

static KEPT: Mutex<Vec<Tensor>> = Mutex::new(Vec::new());

#[memcheck_runtime::mem_test(baseline = false)]
fn planted_leak(device: &Device) -> Result<()> {
    let tensor = Tensor::zeros(1 << 20, DType::U8, device)?;
    KEPT.lock().unwrap().push(tensor);
    Ok(())
}

#[memcheck_runtime::mem_test(baseline = false)]
fn clean_twin(device: &Device) -> Result<()> {
    Tensor::zeros(1 << 20, DType::U8, device).map(drop)
}
"#;

#[derive(Debug)]
pub(super) struct LeakCheck {
    pub(super) proof: Proof,
    /// The reason why the proof could not be stored.
    pub(super) lost: Option<anyhow::Error>,
}

pub(super) fn run(args: &DoctorArgs, workspace: &Workspace) -> Result<Vec<LeakCheck>, Failure> {
    if args.output.verbosity() > Verbosity::Quiet {
        eprint_line!("{FIRST_BUILD}");
    }
    let folder = workspace.own_directory().join("doctor");
    write_package(&folder, workspace).context("writing the package with the planted leak")?;
    let cargo = CargoOptions {
        manifest_path: Some(folder.join("Cargo.toml")),
        target_dir: Some(workspace.target_directory().to_owned()),
        packages: Vec::new(),
        features_gpu: Vec::new(),
        no_package_cuda: true,
        ..args.cargo.clone()
    };
    // Flags are the strongest layer of limits, so no variable can excuse the leak.
    let limits = Layer {
        max_growth: Some(Size(0)),
        iterations: Some(ITERATIONS),
        warmup: Some(2),
        ..Layer::default()
    };
    let ci = CiFlags { ci: false, no_ci: true };
    let flags = Flags::new(&args.output, &cargo).devices(&args.device)?;
    let session = Session::open(Flags { ci, limits, ..flags })?;
    let (nvml, legs) = legs::discover(&session)?;
    let interrupt = Interrupt::listen().context("listening for signals")?;
    let runner = Runner::prepare(&session, nvml, interrupt)?;
    let mut checks = Vec::new();
    for tests in &legs {
        let tasks = session.choose(tests).run;
        let outcomes: Mutex<Vec<(String, TestOutcome)>> = Mutex::new(Vec::new());
        schedule::run_all(
            tasks.len() * RUNS,
            1,
            false,
            |number, _| Ok(runner.run(&tasks[number / RUNS], |_, _| {})?),
            |event| {
                if let RunEvent::Finished(number, outcome) = event {
                    let name = tasks[number / RUNS].name().to_owned();
                    outcomes.lock().expect("no worker panics").push((name, *outcome));
                }
            },
        )?;
        let outcomes = outcomes.into_inner().expect("no worker panics");
        let executable =
            tasks.first().map(|task| task.binary.path().to_owned()).unwrap_or_default();
        let identity = Identity::of(workspace, &args.cargo, &executable);
        let proof = Proof {
            time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            device: tests.leg.name(),
            versions: identity.versions().clone(),
            result: judge(&outcomes).map_or_else(ProofResult::Failure, ProofResult::Evidence),
        };
        let own = workspace.own_directory();
        let lost = proof::store(&own, proof.clone(), identity).err();
        checks.push(LeakCheck { proof, lost });
    }
    Ok(checks)
}

/// In every run, the canary must be seen, the leak must be found to the byte, and the figures must
/// be those of the first run.
fn judge(outcomes: &[(String, TestOutcome)]) -> Result<ProofEvidence, String> {
    let leaks = runs(outcomes, "planted_leak")?;
    let clean = runs(outcomes, "clean_twin")?;
    let mut line = None;
    for outcome in &leaks {
        let mut findings = outcome.verdict.findings.iter();
        let found = findings.find(|finding| finding.code == Code::Leak);
        match found.map(|finding| (finding, finding.bytes_per_iteration)) {
            Some((finding, Some(LEAK))) => line = line.or_else(|| place(finding)),
            _ => return Err(format!("the leak of {LEAK} B per iteration: {}", described(outcome))),
        }
    }
    if let Some(outcome) = clean.iter().find(|it| it.verdict.status != Status::Passed) {
        return Err(format!("the test that does not leak: {}", described(outcome)));
    }
    let leak =
        FoundLeak { planted_bytes_per_iteration: LEAK, found_bytes_per_iteration: LEAK, line };
    let all = || leaks.iter().chain(&clean).copied();
    Ok(ProofEvidence { canary: canary(all())?, leak, exactness: exactness(&[&leaks, &clean])? })
}

/// The judged spaces that saw the canary, which must be the same in all runs.
fn canary<'a>(outcomes: impl Iterator<Item = &'a TestOutcome>) -> Result<Vec<Space>, String> {
    let mut spaces: Option<Vec<Space>> = None;
    for outcome in outcomes {
        let record = &outcome.report.as_ref().ok_or("a run left no report")?.record;
        for space in &record.judged {
            if !record.spaces.get(space).is_some_and(|measured| measured.armed) {
                return Err(format!("the canary was not seen in {space}"));
            }
        }
        if *spaces.get_or_insert_with(|| record.judged.clone()) != record.judged {
            return Err("two runs judged different spaces".to_owned());
        }
    }
    spaces.filter(|spaces| !spaces.is_empty()).ok_or_else(|| "no space was judged".to_owned())
}

fn exactness(tests: &[&[&TestOutcome]]) -> Result<Exactness, String> {
    let mut figures = 0;
    for outcomes in tests {
        let records = outcomes.iter().filter_map(|outcome| outcome.report.as_ref());
        let runs: Vec<Figures> = records.map(|report| Figures::of(&report.record)).collect();
        let first = runs.first().ok_or("a run left no report")?;
        figures += first.0.values().map(BTreeMap::len).sum::<usize>();
        let ranges = Repeats { asked: None, runs }.ranges();
        if let Some(range) = ranges.first() {
            return Err(format!("the runs of a planted test are not identical: {}", range.text()));
        }
    }
    Ok(Exactness { runs: RUNS, figures })
}

/// All runs of a test.
fn runs<'a>(
    outcomes: &'a [(String, TestOutcome)],
    name: &str,
) -> Result<Vec<&'a TestOutcome>, String> {
    let named = outcomes.iter().filter(|(test, _)| test == name);
    let runs: Vec<&TestOutcome> = named.map(|(_, outcome)| outcome).collect();
    match runs.len() {
        RUNS => Ok(runs),
        other => Err(format!("`{name}` ran {other} times instead of {RUNS}")),
    }
}

fn place(finding: &Finding) -> Option<String> {
    let site = finding.sites.first()?;
    Some(format!("{}:{}", site.file.as_deref()?, site.line?))
}

fn described(outcome: &TestOutcome) -> String {
    let findings = outcome.verdict.findings.iter();
    let findings: Vec<String> =
        findings.map(|finding| format!("{}: {}", finding.code, finding.message)).collect();
    if findings.is_empty() { "no finding".to_owned() } else { findings.join("; ") }
}

fn write_package(folder: &Path, workspace: &Workspace) -> anyhow::Result<()> {
    let name = |name: &'static str| (name, name);
    Generated {
        name: "memcheck-doctor",
        dependencies: &[name(RUNTIME), name("candle-core")],
        source: ("src/lib.rs", SOURCE),
        least_candle: Version::new(0, 9, 2),
    }
    .write(folder, workspace)
}

#[cfg(test)]
mod tests {
    use memcheck_core::measurement::record::SpaceRecord;

    use super::*;
    use crate::presentation::presenters::example::leaky;

    /// All runs of both tests, of which `change` changes one.
    fn outcomes(change: impl Fn(&str, usize, &mut TestOutcome)) -> Vec<(String, TestOutcome)> {
        let mut all = Vec::new();
        for name in ["planted_leak", "clean_twin"] {
            for number in 0..RUNS {
                let mut outcome = leaky();
                match name {
                    "planted_leak" => {
                        outcome.verdict.findings[0].bytes_per_iteration = Some(LEAK);
                    }
                    _ => {
                        outcome.verdict.findings.clear();
                        outcome.verdict.status = Status::Passed;
                    }
                }
                change(name, number, &mut outcome);
                all.push((name.to_owned(), outcome));
            }
        }
        all
    }

    fn space(outcome: &mut TestOutcome) -> &mut SpaceRecord {
        let record = &mut outcome.report.as_mut().unwrap().record;
        let judged = record.judged[0];
        record.spaces.get_mut(&judged).unwrap()
    }

    #[test]
    fn identical_runs_that_find_the_leak_are_evidence() {
        let evidence = judge(&outcomes(|_, _, _| {})).unwrap();
        assert_eq!(evidence.canary, [Space::Host]);
        assert_eq!(evidence.leak.line.as_deref(), Some("src/model.rs:20"));
        assert_eq!(evidence.exactness.runs, RUNS);
        assert!(evidence.exactness.figures > 2);
    }

    #[test]
    fn one_run_that_differs_is_no_evidence() {
        type Change = fn(&mut TestOutcome);
        let changes: [(&str, Change, &str); 6] = [
            ("planted_leak", |it| it.verdict.findings.clear(), "no finding"),
            (
                "planted_leak",
                |it| it.verdict.findings[0].bytes_per_iteration = Some(LEAK - 1),
                "the leak of 1048576 B per iteration: leak",
            ),
            ("clean_twin", |it| it.verdict.status = Status::Failed, "does not leak"),
            ("clean_twin", |it| space(it).armed = false, "the canary was not seen in host"),
            ("clean_twin", |it| space(it).metrics.peak_allocated += 1, "not identical"),
            ("planted_leak", |it| it.report = None, "left no report"),
        ];
        for (test, change, expected) in changes {
            let one = outcomes(|name, number, outcome| {
                if (name, number) == (test, RUNS - 1) {
                    change(outcome);
                }
            });
            let why = judge(&one).unwrap_err();
            assert!(why.contains(expected), "{expected}: {why}");
        }
        let mut fewer = outcomes(|_, _, _| {});
        fewer.pop();
        assert!(judge(&fewer).unwrap_err().contains("ran 4 times"));
        assert!(judge(&[]).is_err());
    }
}
