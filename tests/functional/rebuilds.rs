//! Every verdict is about the present code: however an input of the build changes between two runs,
//! the second run measures the new code, and a run measures one build throughout.

pub(crate) mod inputs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::fixture::{CLEAN_AND_FIXED, CLEAN_AND_LEAKY, Project, Run, command, memcheck_with};
use inputs::Inputs;

/// Each input decides whether one test leaks. All change at once, and each has a crate of its own, so
/// that none is built again because of another.
#[test]
#[ignore = "slow: just all"]
fn a_change_of_any_input_is_measured() {
    let inputs = Inputs::new();
    inputs.set("false");
    inputs.assert_verdicts("passed");
    for state in ["true", "false"] {
        inputs.set(state);
        inputs.assert_verdicts(if state == "true" { "failed" } else { "passed" });
    }
}

/// `cargo memcheck run` in `project` with its executables in `target`.
fn run_in(project: &Project, target: &Path) -> Run {
    let arguments =
        ["run", "--device", "cpu", "--message-format", "json", "--no-ci", "--max-iterations", "10"];
    let target = target.display().to_string();
    memcheck_with(project.path(), &arguments, &[("CARGO_TARGET_DIR", &target)])
}

#[test]
#[ignore = "slow: just all"]
fn two_checkouts_with_one_target_directory_measure_their_own_code() {
    let name = "two_checkouts";
    let target = tempfile::tempdir().expect("a folder");
    let (leaky, fixed) = (Project::package(name, inputs::RUNTIME), tempfile::tempdir().unwrap());
    leaky.write("tests/mem.rs", &format!("{}{CLEAN_AND_FIXED}", inputs::PRELUDE));
    let copied = Command::new("cp").arg("-a").arg(leaky.path()).arg(fixed.path()).status();
    assert!(copied.is_ok_and(|status| status.success()));
    std::thread::sleep(Duration::from_millis(50));
    leaky.write("tests/mem.rs", &format!("{}{CLEAN_AND_LEAKY}", inputs::PRELUDE));
    let other = fixed.path().join(leaky.path().file_name().unwrap());
    let run_fixed = || {
        let arguments = ["run", "--device", "cpu", "--message-format", "json", "--no-ci"];
        let target = target.path().display().to_string();
        let build = crate::fixture::target().display().to_string();
        let variables = [
            ("CARGO_TARGET_DIR", target.as_str()),
            ("CARGO_BUILD_BUILD_DIR", &build),
            ("CARGO_INCREMENTAL", "0"),
        ];
        memcheck_with(&other, &arguments, &variables)
    };
    for _ in 0..2 {
        let run = run_in(&leaky, target.path()).exits(100);
        assert!(run.codes("leaky").contains(&"leak".to_owned()), "{}", run.stderr);
        // Its sources are older than the executable of the other checkout.
        run_fixed().exits(0);
    }
}

/// Starts a run whose first test waits for the file `go`, and changes the executable meanwhile.
fn run_while(project: &Project, change: impl FnOnce(&Path)) -> Run {
    let arguments = [
        "run",
        "--device",
        "cpu",
        "--message-format",
        "json",
        "--no-ci",
        "--test-threads",
        "1",
        "--max-iterations",
        "10",
    ];
    let _ = fs::remove_file(project.path().join("go"));
    let mut command = command(project.path(), &arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let waits = project.path().join("waits");
    let deadline = Instant::now() + Duration::from_secs(300);
    while !waits.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let executable = PathBuf::from(project.read("waits"));
    fs::remove_file(&waits).expect("the first test waits");
    change(&executable);
    project.write("go", "");
    Run::from_output(&child.wait_with_output().expect("it ends"))
}

#[test]
#[ignore = "slow: just all"]
fn all_tests_of_a_run_are_those_of_one_build() {
    let waiting = "
#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn a_waits() {
    let executable = std::env::current_exe().unwrap();
    if std::path::Path::new(\"go\").exists() {
        return;
    }
    std::fs::write(\"waits.part\", executable.to_str().unwrap()).unwrap();
    std::fs::rename(\"waits.part\", \"waits\").unwrap();
    while !std::path::Path::new(\"go\").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
";
    let project = Project::new(&format!("{waiting}{CLEAN_AND_FIXED}"));
    let fixed = project.path().join("fixed");
    run_while(&project, |executable| {
        fs::copy(executable, &fixed).expect("the executable is copied");
    })
    .exits(0);
    let leaky = format!("{}{waiting}{CLEAN_AND_LEAKY}", inputs::PRELUDE);
    let assert_leaks = |change: &dyn Fn(&Path)| {
        let run = run_while(&project, change).exits(100);
        assert!(run.codes("leaky").contains(&"leak".to_owned()), "{}", run.stderr);
        assert_eq!(run.test("clean")["status"], "passed", "{}", run.stderr);
    };
    project.write("tests/mem.rs", &leaky);
    // Another cargo builds other sources during the run.
    assert_leaks(&|executable| fs::rename(&fixed, executable).unwrap());
    project.write("tests/mem.rs", &format!("{leaky}\n"));
    assert_leaks(&|executable| fs::remove_file(executable).unwrap());
}

/// A compiler that adds a `--cfg`. Another version of the compiler compiles candle again, so that no
/// test changes it.
#[test]
#[ignore = "slow: just all"]
fn another_compiler_of_the_workspace_is_measured() {
    let tests = "
#[mem_test(max_growth = \"0 B\", baseline = false)]
fn depends_on_the_compiler(trial: &mut Trial) -> candle_core::Result<()> {
    let (device, mut kept) = (trial.device().clone(), Vec::new());
    trial.iterate(|_| {
        let tensor = Tensor::zeros(1024, DType::F32, &device)?;
        if cfg!(leaky) {
            kept.push(tensor);
        }
        Ok(())
    })
}
";
    let project = Project::new(tests);
    project.write("compiler", "#!/bin/sh\nexec \"$@\" --cfg leaky\n");
    let compiler = project.path().join("compiler");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&compiler, executable).expect("the script is executable");
    let compiler = compiler.display().to_string();
    let wrapped = [("RUSTC_WORKSPACE_WRAPPER", compiler.as_str())];
    let arguments =
        ["run", "--device", "cpu", "--device", "sim", "--no-ci", "--max-iterations", "10"];
    let plain: &[(&str, &str)] = &[];
    for (variables, code) in [(plain, 0), (&wrapped[..], 100), (plain, 0), (&wrapped[..], 100)] {
        memcheck_with(project.path(), &arguments, variables).exits(code);
    }
}

#[test]
fn warnings_of_cargo_are_printed_in_every_run() {
    let project = Project::new("#[mem_test(baseline = false)]\nfn a() {}\n");
    project.write("src/lib.rs", "//! A user's package.\nfn unused() {}\n");
    for _ in 0..2 {
        project.run(&[]).exits(0).prints("function `unused` is never used");
    }
}

/// The command sets a profile of the simulator, which cargo warns about if it is not built. The
/// package has a program, for which cargo writes no list of its sources next to the executable.
#[test]
fn nothing_is_printed_or_built_if_nothing_has_changed() {
    let project = Project::new("#[mem_test(baseline = false)]\nfn a() {}\n");
    project.write("src/main.rs", "fn main() {}\n");
    let run = || {
        project.memcheck(&["run", "--device", "sim", "--test", "mem", "--no-ci"]).exits(0).stderr
    };
    let first = run();
    let again = run();
    assert!(
        !again.contains("warning") && !again.contains("built the tests"),
        "{first}\n---\n{again}"
    );
}
