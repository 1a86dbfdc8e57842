//! A build with a real CUDA toolkit must measure the same as the simulated build, to the byte. It
//! runs on the simulated device, which is a separate `libcuda` there. Ignored: `just real`
//! downloads the toolkit and compiles candle's kernels.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::fixture::{Run, memcheck_with, workspace};
use crate::machine::Machine;

/// The figures that depend only on the program.
const FIGURES: [&str; 7] = [
    "allocated",
    "allocated_total",
    "allocations",
    "growth",
    "peak_allocated",
    "retained",
    "setup",
];

/// All workloads. `-D improved` also detects figures below the baseline.
const WORKLOADS: [&str; 2] = ["-D", "improved"];

/// The variables that `scripts/cuda-toolkit` exports.
fn toolkit() -> Vec<(String, String)> {
    let script = workspace().join("scripts/cuda-toolkit");
    let output = Command::new(&script).output().expect("the script runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let script = String::from_utf8(output.stdout).expect("text");
    let line = |line: &str| {
        let (name, value) = line.strip_prefix("export ")?.split_once('=')?;
        assert!(!value.contains(['\\', '\'']), "the value is quoted: {line}");
        Some((name.to_owned(), value.to_owned()))
    };
    let exports: Vec<_> = script.lines().filter_map(line).collect();
    assert!(exports.iter().any(|(name, _)| name == "CUDA_HOME"), "{script}");
    exports
}

/// Runs one test target. With `cuda` it runs in the environment of the toolkit.
fn run(device: &str, target: &str, more: &[&str]) -> Run {
    let runner = workspace().join("scripts/simulated-driver").display().to_string();
    let mut arguments = vec!["run", "-p", "memcheck-tests", "--test", target];
    arguments.extend(["--device", device, "--message-format", "json", "--ci"]);
    let mut variables = Vec::new();
    if device == "cuda" {
        arguments.extend(["--runner", &runner]);
        variables = toolkit();
    }
    arguments.extend(more);
    let variables: Vec<_> = variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    memcheck_with(&workspace(), &arguments, &variables)
}

/// The results on which both builds must agree, by test: status, findings with their call sites,
/// figures.
fn measured(run: &Run) -> BTreeMap<String, Value> {
    let of_space = |metrics: &Value| -> Value {
        FIGURES.map(|figure| (figure.to_owned(), metrics[figure].clone())).into_iter().collect()
    };
    let figures = |metrics: &Value| -> Value {
        let spaces = metrics.as_object().into_iter().flatten();
        spaces
            .filter(|(space, _)| space.starts_with("cuda"))
            .map(|(space, metrics)| (space.clone(), of_space(metrics)))
            .collect()
    };
    let finished = run.json().into_iter().filter(|line| line["type"] == "test-finished");
    finished
        .map(|line| {
            let measured = serde_json::json!({
                "status": line["status"],
                "findings": line["findings"],
                "figures": figures(&line["metrics"]),
            });
            (line["test"].as_str().expect("a name").to_owned(), measured)
        })
        .collect()
}

fn assert_builds_agree(target: &str, code: u8, more: &[&str], least: usize) {
    let real = measured(&run("cuda", target, more).exits(code));
    assert_simulated_build_agrees(target, &real, code, more, least);
}

/// Asserts that the simulated build measures the same as the real one.
fn assert_simulated_build_agrees(
    target: &str,
    real: &BTreeMap<String, Value>,
    code: u8,
    more: &[&str],
    least: usize,
) {
    let simulated = measured(&run("sim:h200", target, more).exits(code));
    assert!(simulated.len() >= least, "{} tests", simulated.len());
    for (test, expected) in &simulated {
        assert_eq!(real.get(test), Some(expected), "{target} {test}");
    }
    assert_eq!(real.len(), simulated.len());
    eprintln!("{target}: {} tests, the same in both builds", real.len());
}

#[test]
#[ignore = "fetches a CUDA toolkit and compiles candle's kernels"]
fn workloads_have_the_figures_of_the_simulated_build() {
    assert_builds_agree("workloads", 0, &WORKLOADS, 60);
}

#[test]
#[ignore = "fetches a CUDA toolkit and compiles candle's kernels"]
fn controls_have_the_findings_of_the_simulated_build() {
    assert_builds_agree("controls", 100, &["--run-ignored", "only"], 16);
}

#[test]
#[ignore = "fetches a CUDA toolkit and compiles candle's kernels"]
fn leaks_and_their_fixed_twins_have_the_findings_of_the_simulated_build() {
    assert_builds_agree("detection", 100, &["--run-ignored", "all"], 88);
}

#[test]
#[ignore = "fetches a CUDA toolkit and compiles candle's kernels"]
fn an_archive_runs_on_a_machine_without_cargo_and_without_a_toolkit() {
    let machine = Machine::new();
    let file = machine.path().join("a.tar.zst").display().to_string();
    let variables = toolkit();
    let variables: Vec<_> = variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let mut arguments = vec!["archive", "-p", "memcheck-tests", "--test", "workloads"];
    arguments.extend(["--device", "cuda", "--archive-file", &file]);
    memcheck_with(&workspace(), &arguments, &variables)
        .exits(0)
        .prints("packed 1 test executable and");

    // The driver and its libraries were built in this workspace. A variable makes them available to
    // the other machine.
    let script = workspace().join("scripts/simulated-driver");
    let listed = Command::new(script).arg("nvidia-smi").env_remove("CARGO_TARGET_DIR").output();
    let listed = String::from_utf8(listed.expect("the script runs").stdout).expect("text");
    let libraries = workspace().join("target/memcheck/driver/lib");
    machine.program("nvidia-smi", &format!("echo '{}'", listed.trim_end()));

    let alone = machine.run(&["--device", "cuda"]).exits(105);
    for library in ["libcuda.so.1", "libcublas.so.13", "libcurand.so.10"] {
        assert!(alone.stderr.contains(library), "{library} is not named in\n{}", alone.stderr);
    }
    let folder = libraries.display().to_string();
    let arguments = ["--device", "cuda", "--library-path", &folder];
    let run = machine.run(&[&arguments[..], &WORKLOADS].concat());
    assert_simulated_build_agrees("workloads", &measured(&run.exits(0)), 0, &WORKLOADS, 60);
}

#[test]
#[ignore = "fetches a CUDA toolkit and compiles candle's kernels"]
fn tests_are_spread_over_two_gpus() {
    // Without a launcher the command assigns the GPUs, and the driver is on the search path.
    let bin = tempfile::tempdir().expect("a temporary folder");
    let driver = workspace().join("scripts/simulated-driver");
    let smi = bin.path().join("nvidia-smi");
    std::fs::write(&smi, format!("#!/bin/sh\nexec {} nvidia-smi \"$@\"\n", driver.display()))
        .expect("a program");
    std::fs::set_permissions(&smi, PermissionsExt::from_mode(0o755)).expect("it can be run");
    let libraries = workspace().join("target/memcheck/driver/lib");
    let mut variables: BTreeMap<String, String> = toolkit().into_iter().collect();
    for (name, first) in [("PATH", bin.path()), ("LD_LIBRARY_PATH", &libraries)] {
        let rest = variables.get(name).cloned().or_else(|| std::env::var(name).ok());
        let joined = format!("{}:{}", first.display(), rest.unwrap_or_default());
        variables.insert(name.to_owned(), joined.trim_end_matches(':').to_owned());
    }
    variables.insert("MEMCHECK_SIM".to_owned(), "2xh200".to_owned());
    let variables: Vec<_> = variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let arguments = ["run", "-p", "memcheck-tests", "--test", "workloads", "--device", "cuda"];
    let more = ["--message-format", "json", "--ci"];
    let arguments = [&arguments[..], &more, &WORKLOADS].concat();
    let run = memcheck_with(&workspace(), &arguments, &variables).exits(0);
    let mut used = std::collections::BTreeSet::new();
    for line in run.json().iter().filter(|line| !line["gpu"].is_null()) {
        // The UUID that the driver in the test's process reported must be that of the assigned GPU.
        let index = line["gpu"]["index"].as_u64().expect("an index");
        let uuid = format!("GPU-6d656d63-6865-636b-2d73-696d{index:08x}");
        assert_eq!(line["gpu"]["uuid"], uuid.as_str(), "{}", line["test"]);
        assert_eq!(line["device"], "cuda:0", "{}", line["test"]);
        used.insert(index);
    }
    assert_eq!(used, [0, 1].into());
    let simulated = measured(&self::run("sim:2xh200", "workloads", &WORKLOADS).exits(0));
    assert_eq!(measured(&run), simulated, "the figures depend on the GPU");
}
