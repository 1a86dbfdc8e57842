//! A plain `cargo test`, without the command. The explanations of a second run must be valid. A
//! process that the test starts must not be mistaken for the test. If a memory test hangs, or its
//! harness is killed, no process may be left running and no file may stay.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::fixture::{Programs, Project, interrupt, is_running};

fn programs() -> Programs {
    Programs::of("plain")
}

fn wait_until(event: &str, has_happened: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(300);
    while !has_happened() {
        assert!(Instant::now() < deadline, "not within five minutes: {event}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn no_process_outlives_the_test_that_started_it_however_the_test_ends() {
    let programs = programs();
    let mut plain = programs.cargo_test();
    let output = plain.args(["--", "plain::ends_by_"]).output().expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(101), "{text}");
    for line in [
        "timed-out: the test was still running after 2s",
        "test plain::ends_by_a_return ... ok",
        "crashed: SIGABRT (signal 6) ended the process",
        "test plain::ends_by_an_exit ... FAILED",
    ] {
        assert!(text.contains(line), "`{line}` is not in {text}");
    }
    for file in ["returned", "aborted", "exited"] {
        let daemon = programs.read(file);
        assert!(daemon.parse::<u32>().is_ok(), "{file}: {daemon}");
        assert!(!is_running(&daemon), "the daemon of the test that {file} still runs");
    }
    let ids = programs.read("timed-out");
    assert_eq!(ids.split(' ').count(), 3, "{ids}");
    for id in ids.split(' ') {
        // A killed process can take a moment to end.
        let deadline = Instant::now() + Duration::from_secs(10);
        while is_running(id) {
            assert!(Instant::now() < deadline, "{id} still runs");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Asserts that a plain `cargo test` passes, and returns its output.
#[track_caller]
fn passes(cargo_test: &mut Command) -> String {
    let output = cargo_test.output().expect("cargo runs");
    let output_text =
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(0), "{output_text}");
    output_text
}

enum Target {
    /// Cargo's process group.
    Group,
    Harness,
}

fn parent(id: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.expect("every process has a parent").trim().to_owned()
}

#[test]
fn a_killed_harness_leaves_no_process_and_no_file() {
    let programs = programs();
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let is_empty = || std::fs::read_dir(temporary.path()).is_ok_and(|mut it| it.next().is_none());
    // Ctrl-C, a time-out of nextest, and a signal to the harness only.
    let ends = [(interrupt(), Target::Group), ("-KILL", Target::Group), ("-KILL", Target::Harness)];
    for (signal, target) in ends {
        let mut command = programs.cargo_test();
        let mut cargo = command
            .args(["--", "plain::hangs"])
            .env("TMPDIR", temporary.path())
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("cargo starts");
        wait_until("the test starts", || programs.has("ids"));
        let ids = programs.read("ids");
        assert!(ids.split(' ').all(is_running) && !is_empty(), "{ids}");
        let target = match target {
            Target::Group => format!("-{}", cargo.id()),
            // The parent of the test is its supervisor.
            Target::Harness => parent(&parent(ids.split(' ').next().expect("the id of the test"))),
        };
        let sent = Command::new("kill").args([signal, "--", &target]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal could not be sent");
        cargo.wait().expect("cargo ends");
        wait_until("the test ends with its harness", || !ids.split(' ').any(is_running));
        wait_until("the folder of the report is removed", is_empty);
        std::fs::remove_file(programs.path().join("ids")).expect("the file is removed");
    }
}

#[test]
fn growth_in_every_iteration_that_cannot_be_followed_is_a_leak() {
    let programs = programs();
    let run = programs.run("cpu", &["plain::fills_twelve_caches"]).exits(100);
    assert_eq!(run.codes("fills_twelve_caches"), ["leak"]);
    let finding = run.test("fills_twelve_caches")["findings"][0].clone();
    // The smallest of the blocks of the measured iterations but the first.
    assert_eq!(finding["bytes_per_iteration"], 20_300, "{finding}");
    let message = finding["message"].to_string();
    assert!(message.contains("grows by at least 20,300 B"), "{message}");
    let still = "memory still grows in iteration 12, the last, because the body panicked";
    assert_eq!(finding["longer_run"], still, "{finding}");
}

#[test]
fn a_program_that_the_test_starts_is_not_mistaken_for_the_test() {
    let project = Project::bare("memcheck-runtime = { path = \"RUNTIME\" }\n");
    // Linking the runtime makes the code before its `main` the same as in the process of the test.
    project.write("src/main.rs", "use memcheck_runtime as _;\nfn main() {}\n");
    let program = project.name();
    project.write(
        "tests/mem.rs",
        &format!(
            "#[memcheck_runtime::mem_test(baseline = false)]
fn starts_a_program() {{
    let status = std::process::Command::new(env!(\"CARGO_BIN_EXE_{program}\")).status();
    assert!(status.unwrap().success(), \"the program did not succeed\");
}}
"
        ),
    );
    passes(&mut project.cargo_test());
    project.run(&[]).exits(0);
}

#[test]
fn with_two_versions_of_candle_a_baseline_has_that_of_the_runtime() {
    let project = Project::bare(
        "other-candle = { package = \"candle-core\", path = \"other\" }\n\
         [dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n",
    );
    let other = "[package]\nname = \"candle-core\"\nversion = \"0.0.1\"\nedition = \"2024\"\n";
    project.write("other/Cargo.toml", other);
    project.write("other/src/lib.rs", "");
    project.write(
        "tests/mem.rs",
        "#[memcheck_runtime::mem_test]\nfn two() {\n    drop(vec![0_u8; 5000]);\n}\n",
    );
    project.run(&[]).exits(0);
    project.memcheck(&["accept"]).exits(0);
    let snapshot = project.read("tests/snapshots/mem__two@cpu.snap");
    assert!(snapshot.contains("candle: 0.11.1"), "{snapshot}");
    // In CI an uncomparable baseline fails the test, so a pass proves that the baseline is
    // comparable.
    passes(project.cargo_test().env("MEMCHECK_CI", "true"));
}
