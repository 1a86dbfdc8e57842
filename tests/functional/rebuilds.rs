//! The command must start cargo again after each change that cargo would detect, and only then.

use std::os::unix::fs::PermissionsExt;

use crate::fixture::{Project, memcheck_with};

const ONE: &str = "#[mem_test(baseline = false)]\nfn a() {}\n";

/// A project with a cargo that logs each start.
struct LoggedProject {
    project: Project,
    /// Outside the project, so that the log does not change it.
    folder: tempfile::TempDir,
    device: &'static str,
}

impl LoggedProject {
    fn new(device: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let logged = Self { project: Project::new(ONE), folder, device };
        let script =
            format!("#!/bin/sh\necho \"$1\" >> {}\nexec {} \"$@\"\n", logged.log(), env!("CARGO"));
        let cargo = logged.folder.path().join("cargo");
        std::fs::write(&cargo, script).expect("the script is written");
        std::fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).expect("it can be run");
        logged
    }

    fn log(&self) -> String {
        self.folder.path().join("log").display().to_string()
    }

    /// The number of tests that ran, and the subcommands with which cargo was started.
    fn run(&self, variables: &[(&str, &str)]) -> (usize, Vec<String>) {
        let _ = std::fs::remove_file(self.log());
        let arguments = ["run", "--device", self.device, "--message-format", "json", "--no-ci"];
        let cargo = self.folder.path().join("cargo").display().to_string();
        let variables = [&[("CARGO", cargo.as_str())], variables].concat();
        let run = memcheck_with(self.project.path(), &arguments, &variables).exits(0);
        let started = std::fs::read_to_string(self.log()).unwrap_or_default();
        let passed = run.summary()["passed"].as_u64().and_then(|passed| passed.try_into().ok());
        (passed.expect("a number"), started.lines().map(str::to_owned).collect())
    }

    /// Runs until the command does not start cargo any more. A file that changes during a build
    /// makes the command start cargo once more.
    #[track_caller]
    fn run_until_fresh(&self) -> usize {
        for _ in 0..4 {
            let (passed, started) = self.run(&[]);
            if started.is_empty() {
                return passed;
            }
        }
        panic!("the command starts cargo in every run");
    }

    /// Asserts that a change makes the command start cargo, and the number of tests after it.
    #[track_caller]
    fn assert_rebuild(&self, file: &str, text: &str, tests: usize) {
        self.project.write(file, text);
        let (passed, started) = self.run(&[]);
        assert!(!started.is_empty(), "{file}: the command does not start cargo");
        assert_eq!((passed, self.run_until_fresh()), (tests, tests), "{file}");
    }
}

#[test]
fn cargo_is_started_after_a_change_and_only_then() {
    let logged = LoggedProject::new("cpu");
    assert_eq!(logged.run_until_fresh(), 1);
    let source = logged.project.read("tests/mem.rs");
    logged.assert_rebuild(
        "tests/mem.rs",
        &format!("{source}#[mem_test(baseline = false)]\nfn b() {{}}\n"),
        2,
    );
    logged.assert_rebuild("tests/other.rs", &source, 3);
    // A folder that cargo has searched before.
    logged.project.write("tests/more/data.txt", "");
    logged.run_until_fresh();
    logged.assert_rebuild("tests/more/main.rs", &source, 4);
    let manifest = logged.project.read("Cargo.toml");
    logged.assert_rebuild(
        "Cargo.toml",
        &format!("{manifest}\n[[test]]\nname = \"mem\"\ntest = false\n"),
        2,
    );
    logged.assert_rebuild(
        "build.rs",
        "fn main() { println!(\"cargo::rerun-if-changed=data\"); }\n",
        2,
    );
    logged.assert_rebuild("data", "", 2);
    logged.assert_rebuild(".cargo/config.toml", "[env]\nSOME = \"1\"\n", 2);
    let (_, started) = logged.run(&[("SOME_VARIABLE", "1")]);
    assert_eq!(started, ["metadata", "test"]);
    logged.run_until_fresh();
    // A variable of the command itself changes no build.
    let (_, started) = logged.run(&[("MEMCHECK_MAX_PEAK", "1 GB")]);
    assert!(started.is_empty(), "{started:?}");
}

/// Warnings of cargo would start it in every run. The command sets a profile of the simulator.
#[test]
fn the_profile_of_the_simulated_device_causes_no_warning() {
    let logged = LoggedProject::new("sim");
    assert_eq!(logged.run_until_fresh(), 1);
}

#[test]
fn warnings_of_cargo_are_printed_in_every_run() {
    let project = Project::new(ONE);
    project.write("src/lib.rs", "//! A user's package.\nfn unused() {}\n");
    for _ in 0..3 {
        project.run(&[]).exits(0).prints("function `unused` is never used");
    }
}
