//! A planted leak, which proves that leaks are found on this machine: a generated package, built
//! with the workspace's own dependencies, has a test that leaks a known number of bytes in every
//! iteration, and a clean twin.

use std::path::Path;
use std::sync::Mutex;

use anyhow::Context;
use memcheck_core::judgement::finding::Code;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::limits::Layer;
use memcheck_core::size::Size;

use crate::build::generated::Generated;
use crate::build::workspace::{RUNTIME, Workspace};
use crate::discovery::legs;
use crate::discovery::session::Session;
use crate::discovery::task::TestOutcome;
use crate::execution::run::Runner;
use crate::execution::schedule::{self, Event};
use crate::invocation::cli::{CiFlags, DoctorArgs};
use crate::invocation::options::Flags;
use crate::invocation::values::{CargoOptions, Verbosity};
use crate::system::error::Failure;
use crate::system::printing::eprint_line;
use crate::system::process::Interrupt;

/// Bytes in every iteration.
const LEAK: u64 = 1 << 20;
const ITERATIONS: u32 = 8;
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
    pub(super) leg: String,
    pub(super) result: Result<String, String>,
}

pub(super) fn run(args: &DoctorArgs, workspace: &Workspace) -> Result<Vec<LeakCheck>, Failure> {
    if args.output.verbosity() > Verbosity::Quiet {
        eprint_line!("{FIRST_BUILD}");
    }
    let folder = workspace.own_directory().join("doctor");
    write_package(&folder, workspace).context("the package with the planted leak")?;
    let cargo = CargoOptions {
        manifest_path: Some(folder.join("Cargo.toml")),
        target_dir: Some(workspace.target_directory().to_owned()),
        packages: Vec::new(),
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
    let mut answers = Vec::new();
    for tests in &legs {
        let tasks = session.choose(tests).run;
        let outcomes: Mutex<Vec<(String, TestOutcome)>> = Mutex::new(Vec::new());
        schedule::run_all(
            tasks.len(),
            1,
            false,
            |number, _| runner.run(&tasks[number], |_| {}),
            |event| {
                if let Event::Finished(number, outcome) = event {
                    let name = tasks[number].name().to_owned();
                    outcomes.lock().expect("no worker panics").push((name, *outcome));
                }
            },
        )?;
        let outcomes = outcomes.into_inner().expect("no worker panics");
        answers.push(LeakCheck { leg: tests.leg.name(), result: judge(&outcomes) });
    }
    Ok(answers)
}

/// The leak must be found to the byte.
fn judge(outcomes: &[(String, TestOutcome)]) -> Result<String, String> {
    let of = |name: &str| {
        let found = outcomes.iter().find(|(test, _)| test == name);
        found.map(|(_, outcome)| outcome).ok_or_else(|| format!("`{name}` was not run"))
    };
    let describe = |outcome: &TestOutcome| {
        let findings: Vec<String> = outcome
            .verdict
            .findings
            .iter()
            .map(|finding| format!("{}: {}", finding.code, finding.message))
            .collect();
        if findings.is_empty() { "no finding".to_owned() } else { findings.join("; ") }
    };
    let leak = of("planted_leak")?;
    let found = leak.verdict.findings.iter().find(|finding| finding.code == Code::Leak);
    match found.and_then(|finding| finding.bytes_per_iteration) {
        Some(LEAK) => {}
        _ => return Err(format!("the leak of {LEAK} B per iteration: {}", describe(leak))),
    }
    let clean = of("clean_twin")?;
    if clean.verdict.status != Status::Passed {
        return Err(format!("the test that does not leak: {}", describe(clean)));
    }
    Ok(format!("the leak of {LEAK} B per iteration was found, and its clean twin passed"))
}

fn write_package(folder: &Path, workspace: &Workspace) -> anyhow::Result<()> {
    let name = |name: &'static str| (name, name);
    Generated {
        name: "memcheck-doctor",
        dependencies: &[name(RUNTIME), name("candle-core")],
        source: ("src/lib.rs", SOURCE),
    }
    .write(folder, workspace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_leak_that_is_not_found_fails() {
        let mut passed = TestOutcome::ignored();
        passed.verdict.status = Status::Passed;
        let both = [("planted_leak".to_owned(), passed.clone()), ("clean_twin".to_owned(), passed)];
        assert!(judge(&both).unwrap_err().contains("no finding"));
        assert!(judge(&[]).is_err());
    }
}
