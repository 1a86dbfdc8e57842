//! The command must start cargo again after each change that cargo would detect, and only then.

use std::os::unix::fs::PermissionsExt;

use crate::fixture::{Project, memcheck_with};

const ONE: &str = "#[mem_test(baseline = false)]\nfn a() {}\n";

/// A project with a cargo that logs each start.
struct Watched {
    project: Project,
    /// Outside the project, so that the log does not change it.
    folder: tempfile::TempDir,
}

impl Watched {
    fn new() -> Self {
        let watched =
            Self { project: Project::new(ONE), folder: tempfile::tempdir().expect("a folder") };
        let script =
            format!("#!/bin/sh\necho \"$1\" >> {}\nexec {} \"$@\"\n", watched.log(), env!("CARGO"));
        let cargo = watched.folder.path().join("cargo");
        std::fs::write(&cargo, script).expect("the script is written");
        std::fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).expect("it can be run");
        watched
    }

    fn log(&self) -> String {
        self.folder.path().join("log").display().to_string()
    }

    /// The number of tests that ran, and the subcommands with which cargo was started.
    fn run(&self, variables: &[(&str, &str)]) -> (usize, Vec<String>) {
        let _ = std::fs::remove_file(self.log());
        let arguments = ["run", "--device", "cpu", "--message-format", "json", "--no-ci"];
        let cargo = self.folder.path().join("cargo").display().to_string();
        let variables = [&[("CARGO", cargo.as_str())], variables].concat();
        let run = memcheck_with(self.project.path(), &arguments, &variables).exits(0);
        let asked = std::fs::read_to_string(self.log()).unwrap_or_default();
        let passed = run.summary()["passed"].as_u64().and_then(|passed| passed.try_into().ok());
        (passed.expect("a number"), asked.lines().map(str::to_owned).collect())
    }

    /// Runs until the command does not start cargo any more. A file that changes during a build
    /// makes the command start cargo once more.
    #[track_caller]
    fn settle(&self) -> usize {
        for _ in 0..4 {
            let (passed, asked) = self.run(&[]);
            if asked.is_empty() {
                return passed;
            }
        }
        panic!("cargo is asked every time");
    }

    /// Asserts that a change makes the command start cargo, and the number of tests after it.
    #[track_caller]
    fn sees(&self, file: &str, text: &str, tests: usize) {
        self.project.write(file, text);
        let (passed, asked) = self.run(&[]);
        assert!(!asked.is_empty(), "{file}: cargo is not asked");
        assert_eq!((passed, self.settle()), (tests, tests), "{file}");
    }
}

#[test]
fn cargo_is_asked_after_a_change_and_not_without_one() {
    let watched = Watched::new();
    assert_eq!(watched.settle(), 1);
    let source = watched.project.read("tests/mem.rs");
    watched.sees(
        "tests/mem.rs",
        &format!("{source}#[mem_test(baseline = false)]\nfn b() {{}}\n"),
        2,
    );
    watched.sees("tests/other.rs", &source, 3);
    // A folder that cargo has searched before.
    watched.project.write("tests/more/data.txt", "");
    watched.settle();
    watched.sees("tests/more/main.rs", &source, 4);
    let manifest = watched.project.read("Cargo.toml");
    watched.sees("Cargo.toml", &format!("{manifest}\n[[test]]\nname = \"mem\"\ntest = false\n"), 2);
    watched.sees("build.rs", "fn main() { println!(\"cargo::rerun-if-changed=data\"); }\n", 2);
    watched.sees("data", "", 2);
    watched.sees(".cargo/config.toml", "[env]\nSOME = \"1\"\n", 2);
    let (_, asked) = watched.run(&[("SOME_VARIABLE", "1")]);
    assert_eq!(asked, ["metadata", "test"]);
}

#[test]
fn what_cargo_warns_of_is_seen_in_every_run() {
    let project = Project::new(ONE);
    project.write("src/lib.rs", "//! A user's package.\nfn unused() {}\n");
    for _ in 0..3 {
        project.run(&[]).exits(0).says("function `unused` is never used");
    }
}
