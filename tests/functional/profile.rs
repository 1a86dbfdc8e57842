//! `cargo memcheck profile`: the figures of a test and of a program must add up, and user errors
//! must have clear messages.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use memcheck_core::device::Family;
use memcheck_core::limits::Limits;
use memcheck_core::wire::protocol::{Measurement, ProgramJob, VERSION};
use serde_json::Value;

use crate::fixture::{Programs, Project, Run, build_example, memcheck, memcheck_with, workspace};

fn programs() -> Programs {
    Programs::of("profile")
}

fn profile(programs: &Programs, arguments: &[&str]) -> Run {
    programs.memcheck(&[&["profile"], arguments].concat())
}

/// The one line of JSON before the summary.
fn json_of(run: &Run) -> Value {
    let lines = run.json();
    assert_eq!(lines.len(), 2, "{}", run.stdout);
    assert_eq!((&lines[0]["type"], &lines[1]["type"]), (&"profile".into(), &"summary".into()));
    lines[0].clone()
}

fn sum(rows: &Value, column: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[column].as_u64().unwrap()).sum()
}

fn named<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let rows = rows.as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {rows:#?}"))
}

#[test]
fn the_profile_of_a_test_has_the_figures_of_its_run() {
    let programs = programs();
    let run =
        programs.run("cpu", &["--exact", "profile::layers_leaky", "--explain", "never"]).exits(100);
    let metrics = run.test("layers_leaky")["metrics"]["host"].clone();
    let arguments = ["--device", "cpu", "--message-format", "json", "profile::layers_leaky"];
    let run = profile(&programs, &arguments).exits(100);
    let profile = json_of(&run);
    assert_eq!(run.summary()["exit_code"], 100);
    assert_eq!(
        (&profile["test"], &profile["status"]),
        (&"profile::layers_leaky".into(), &"failed".into())
    );
    assert_eq!(profile["findings"][0]["code"], "leak");
    let host = &profile["spaces"][0];
    let table = &host["table"];
    assert_eq!(host["peak_allocated"], metrics["peak_allocated"]);
    assert_eq!(table["total"]["calls"], metrics["allocations"]);
    assert_eq!(table["total"]["bytes"], metrics["allocated_total"]);
    assert_eq!(host["growth"]["bytes_per_iteration"], metrics["growth"]);
}

#[test]
fn the_human_output_of_a_profile_follows_its_flags() {
    let programs = programs();
    let flags = ["--by", "scope", "--sort", "name", "--top", "1", "--color", "always"];
    let test = ["--device", "cpu", "--report", "json=run.json", "profile::layers_leaky"];
    let run = profile(&programs, &[&flags[..], &test].concat()).exits(100).prints("FAIL");
    for part in ["forward", "(others: ", "largest holders", "\u{1b}"] {
        assert!(run.stdout.contains(part), "`{part}` is not in\n{}", run.stdout);
    }
    run.prints("leak");
    assert!(programs.read("run.json").contains("test-finished"));
    assert!(!programs.have_snapshots(), "the profile has written a baseline");
}

#[test]
fn a_profile_of_several_tests_or_of_an_unknown_program_is_a_usage_error() {
    let programs = programs();
    let cpu = |arguments: &[&str]| profile(&programs, &[&["--device", "cpu"], arguments].concat());
    cpu(&["profile::layer"]).exits(2).prints("matches 2 tests").prints("layers_leaky");
    let json = cpu(&["--message-format", "json", "no_such_test"]).exits(4);
    assert_eq!(json.summary()["exit_code"], 4);

    let project = Project::bare("[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n");
    let cpu = |arguments: &[&str]| {
        project.memcheck(&[&["profile", "--device", "cpu"], arguments].concat())
    };
    cpu(&["--bin", "tool"]).exits(2).prints("no target `--bin tool`");
    project.write("src/main.rs", "fn main() {}\n");
    let name = project.name().to_owned();
    cpu(&["--bin", &name]).exits(2).prints("cargo add memcheck-runtime");
}

/// A program that ends in another way for each argument.
const PROGRAM: &str = "
use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime as _;

fn main() -> Result<()> {
    let how = std::env::args().nth(1).unwrap_or_default();
    println!(\"to stdout: {how}\");
    if how == \"own-subscriber\" {
        use tracing_subscriber::prelude::*;
        tracing_subscriber::registry().with(memcheck_runtime::Scopes).init();
    }
    let device = if how == \"on-the-host\" { Device::Cpu } else { Device::cuda_if_available(0)? };
    let weights = Tensor::zeros((256, 64), DType::F32, &device)?;
    let weights = weights.reshape((64, 256))?.contiguous()?;
    let span = tracing::info_span!(\"forward\");
    let outputs = span.in_scope(|| {
        (0..4).map(|_| weights.affine(2.0, 1.0)).collect::<Result<Vec<_>>>()
    })?;
    match how.as_str() {
        \"exit\" => std::process::exit(0),
        \"fail\" => std::process::exit(3),
        \"panic\" => panic!(\"on purpose\"),
        \"abort\" => std::process::abort(),
        \"child\" => {
            let own = std::env::current_exe()?;
            assert!(std::process::Command::new(own).arg(\"grandchild\").status()?.success());
        }
        _ => {}
    }
    drop(outputs);
    Ok(())
}
";

/// The package of the program, which is built once for each device.
fn program() -> &'static Project {
    static PROJECT: OnceLock<Project> = OnceLock::new();
    PROJECT.get_or_init(|| {
        let project = Project::package(
            "profile-program",
            "memcheck-runtime = { path = \"RUNTIME\" }\ntracing = \"0.1\"\n\
             tracing-subscriber = { version = \"0.3\", default-features = false, features = [\"registry\", \"std\"] }\n",
        );
        project.write("src/main.rs", PROGRAM);
        project
    })
}

fn program_on(device: &str, project: &Project, how: &str) -> Run {
    let name = project.name().to_owned();
    let arguments = ["--device", device, "--message-format", "json", "--bin", &name, "--", how];
    project.memcheck(&[&["profile"], &arguments[..]].concat())
}

#[test]
fn a_program_is_followed_to_its_exit_however_it_ends() {
    let project = program();
    for (how, code, status) in [
        ("return", 0, "passed"),
        ("exit", 0, "passed"),
        ("child", 0, "passed"),
        ("own-subscriber", 0, "passed"),
        ("fail", 100, "failed"),
        ("panic", 100, "failed"),
    ] {
        let run = program_on("cpu", project, how).exits(code).prints(&format!("to stdout: {how}"));
        let profile = json_of(&run);
        assert_eq!(profile["program"], project.name(), "{how}");
        assert_eq!(profile["status"], status, "{how}");
        let host = &profile["spaces"][0];
        assert_eq!(host["window"], "whole", "{how}");
        let rows = &host["table"]["rows"];
        assert_eq!(sum(rows, "peak"), host["peak_allocated"].as_u64().unwrap(), "{how}");
        let affine = named(rows, "affine");
        assert_eq!((&affine["calls"], &affine["peak"]), (&4.into(), &(4 * 65_536).into()), "{how}");
        assert_eq!(affine["scopes"][0], "forward", "{how}");
    }
    let aborted = program_on("cpu", project, "abort").exits(100).prints("SIGABRT");
    assert_eq!(json_of(&aborted)["spaces"], serde_json::json!([]));
    assert!(!aborted.stderr.contains("links memcheck-runtime"), "{}", aborted.stderr);
}

#[test]
fn the_limits_of_a_program_come_from_flags_variables_and_the_configuration() {
    let project = program();
    let name = project.name().to_owned();
    let config = ["--config-file", "limits.toml"];
    let arguments = [&["profile", "--device", "cpu", "--bin", &name], &config[..]].concat();
    let run = |flags: &[&str], variables: &[(&str, &str)]| {
        memcheck_with(project.path(), &[&arguments[..], flags].concat(), variables)
    };
    // `[default]` and variables can contain options that are for tests only. A variable is stronger than the
    // configuration, and a flag stronger than both.
    let config = format!("[[override]]\ntest = \"{name}\"\nmax_peak = \"64 KiB\"\n");
    project.write("limits.toml", &format!("[default]\niterations = 3\n{config}"));
    run(&[], &[("MEMCHECK_WARMUP", "1")]).exits(100).prints("peak-limit");
    let roomy = [("MEMCHECK_MAX_PEAK", "1 GiB")];
    run(&[], &roomy).exits(0);
    run(&["--max-peak", "64 KiB"], &roomy).exits(100).prints("peak-limit");
}

#[test]
fn a_program_that_does_not_link_the_runtime_has_a_hint() {
    let project = Project::bare("memcheck-runtime = { path = \"RUNTIME\" }\n");
    project.write("src/main.rs", "fn main() {}\n");
    let name = project.name().to_owned();
    let run = project.memcheck(&["profile", "--device", "cpu", "--bin", &name]).exits(104);
    run.prints("use memcheck_runtime as _;");
}

#[test]
fn the_device_of_a_program_is_the_simulated_one() {
    let project = program();
    let run = program_on("sim:t4", project, "return").exits(0);
    let profile = json_of(&run);
    let device = &profile["spaces"][0];
    assert_eq!(device["space"], "cuda:0");
    assert_eq!(device["peak_allocated"], 5 * 65_536);
    assert_eq!(named(&device["table"]["rows"], "affine")["scopes"][0], "forward");
    assert_eq!(profile["spaces"][1]["space"], "host");

    // Without a device the host is judged, in the spaces that are counted.
    let name = project.name().to_owned();
    let report = ["profile", "--device", "sim:t4", "--report", "json=run.json"];
    project.memcheck(&[&report[..], &["--bin", &name, "--", "on-the-host"]].concat()).exits(0);
    let report = project.read("run.json");
    let mut lines = report.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let finished = lines.find(|line| line["type"] == "test-finished").expect("its result");
    // With the buffer of stdout.
    let peak = 5 * 65_536 + 1_024;
    assert_eq!(finished["metrics"]["host"]["peak_allocated"], peak, "{finished}");
    assert!(finished["metrics"].get("host/small").is_none(), "{finished}");

    // The finding must include the reason that nothing was measured.
    let arguments = ["profile", "--device", "sim:t4", "--message-format", "json"];
    let arguments = [&arguments[..], &["--bin", &name]].concat();
    let faults = [("MEMCHECK_SIM_FAULTS", "oom-at=soon")];
    let run = memcheck_with(project.path(), &arguments, &faults).exits(104);
    let message = json_of(&run)["findings"][0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("oom-at"), "{message}");
}

/// The highest permitted memory of a followed program, whatever its number of events. Measured: 51
/// MiB for 100,000 and for 10,000,000 events.
const BOUND: u64 = 128 << 20;

#[test]
fn a_million_events_are_followed_in_bounded_memory() {
    let program = build_example("profile_many_events");
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let job = ProgramJob {
        version: VERSION,
        program: "profile_many_events".to_owned(),
        package: "memcheck-tests".to_owned(),
        report: Some(report.clone()),
        live: None,
        device: "cpu".parse().unwrap(),
        limits: Limits::resolve(Family::Cpu, []),
        workspace: workspace(),
        candle: "0".to_owned(),
    };
    let mut child = Command::new(program)
        .arg("1000000")
        .env("MEMCHECK_PROGRAM", serde_json::to_string(&job).unwrap())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut highest = 0;
    let status = loop {
        highest = highest.max(resident(child.id()).unwrap_or(0));
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(std::time::Duration::from_millis(2)),
        }
    };
    assert!(status.success());
    let report: Measurement = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let events = report.unresolved.expect("addresses").attribution.events;
    assert!(events >= 1_000_000, "{events}");
    assert!((1 << 20..BOUND).contains(&highest), "{highest} bytes were resident");
}

/// The peak of the resident memory of a process, in bytes.
fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib << 10)
}

#[test]
fn a_workload_has_the_profile_of_the_readme() {
    let arguments = ["profile", "--device", "cpu", "-p", "memcheck-tests", "--test", "workloads"];
    let run = memcheck(&workspace(), &[&arguments[..], &["bert::forward"]].concat()).exits(0);
    for part in ["softmax", "[2,4,32,32] f32", "model.encoder.layer.attn", "tests/src/bert.rs:"] {
        assert!(run.stdout.contains(part), "{part}\n{}", run.stdout);
    }
    assert!(!run.stdout.contains('\u{1b}'), "stdout is not a terminal, but has colors");
}

#[test]
fn examples_and_benches_that_link_the_runtime_as_a_dev_dependency_are_profiled() {
    let project = Project::bare(
        "[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n\
         [[bench]]\nname = \"speed\"\nharness = false\n",
    );
    let body = "use memcheck_runtime as _;\nfn main() {\n\
        \x20   assert_eq!(std::path::Path::new(\"Cargo.toml\").exists(), HERE);\n\
        \x20   std::hint::black_box(vec![0u8; 10_000]);\n}\n";
    // A bench starts in the folder of its package, and an example in the folder in which the
    // command was started.
    project.write("examples/tool.rs", &body.replace("HERE", "false"));
    project.write("benches/speed.rs", &body.replace("HERE", "true"));
    project.write("elsewhere/.keep", "");
    let manifest = project.path().join("Cargo.toml").display().to_string();
    for target in [["--example", "tool"], ["--bench", "speed"]] {
        let folder = project.path().join("elsewhere");
        let arguments = ["profile", "--device", "cpu", "--manifest-path", &manifest];
        let json = ["--message-format", "json"];
        let run = memcheck(&folder, &[&arguments[..], &json, &target].concat()).exits(0);
        let profile = json_of(&run);
        assert_eq!(profile["spaces"][0]["peak_allocated"], 10_000, "{target:?}");
    }
    // If the launcher does not exist, or does not start the program, nothing was measured.
    for (launcher, code) in [("/no/such/launcher", 104), ("false", 104), ("env", 0)] {
        let arguments = ["profile", "--device", "cpu", "--runner", launcher, "--example", "tool"];
        let run = memcheck(
            &project.path().join("elsewhere"),
            &[&arguments[..], &["--manifest-path", &manifest]].concat(),
        );
        let run = run.exits(code);
        assert_eq!(code == 104, run.stderr.contains("its command line"), "{}", run.stderr);
    }
}
