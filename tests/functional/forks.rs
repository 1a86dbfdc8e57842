//! Bodies that fork. Only the process that was started for a test may write its record: a forked
//! child that returns from the body ends without one, whatever its parent does. Also an executable
//! that is replaced while its tests run.

use crate::fixture::Programs;

/// The tests whose measured process ends without a record, and with exit status 0.
const UNRECORDED: [&str; 4] = [
    "exits_while_its_child_returns",
    "exits_while_its_child_panics",
    "exits_in_its_second_round",
    "exits_while_its_child_installs_a_subscriber",
];

/// The tests whose measured process is clean. The first two have a baseline.
const CLEAN: [&str; 3] =
    ["returns_while_its_child_leaks", "returns_while_its_child_fails", "starts_helpers"];

#[test]
fn only_the_process_that_was_started_for_a_test_writes_its_record() {
    let programs = Programs::of("forks");
    for device in ["cpu", "sim"] {
        for explain in ["failed", "always"] {
            let run = programs.run(device, &["--explain", explain]).exits(100);
            for test in UNRECORDED {
                assert_eq!(run.codes(test), ["not-measured"], "{device} {explain} {test}");
            }
            assert_eq!(run.codes("leaks_while_its_child_returns")[0], "leak", "{device} {explain}");
            for test in CLEAN {
                assert_ne!(run.test(test)["status"], "failed", "{device} {explain} {test}");
            }
            let pending = programs.pending_of_results().concat();
            for test in CLEAN {
                assert_eq!(pending.contains(test), test != "starts_helpers", "{pending}");
            }
            assert!(!pending.contains("exits_"), "{pending}");
            assert!(
                run.stderr.contains("which ends here with exit code 3 and without a record"),
                "{}",
                run.stderr
            );
            // The child writes no results of the sweep.
            let swept = run.test("is_swept");
            assert_eq!(swept["status"], "passed", "{device} {explain} {swept}");
            if device == "sim" {
                assert_eq!(swept["fault_sweep"]["refused"], 2, "{explain} {swept}");
            }
        }
    }
    let mut plain = programs.cargo_test();
    let plain = plain.args(["--", "forks::"]).output().expect("cargo runs");
    let text = String::from_utf8_lossy(&[plain.stdout, plain.stderr].concat()).into_owned();
    assert_eq!(plain.status.code(), Some(101), "{text}");
    for test in UNRECORDED {
        assert!(text.contains(&format!("test forks::{test} ... FAILED")), "{test} in {text}");
        let ended = format!("the process of `forks::{test}` ended without a record");
        assert!(text.contains(&ended), "{text}");
    }
    for test in CLEAN {
        assert!(text.contains(&format!("test forks::{test} ... ok")), "{test} in {text}");
    }
    assert!(text.contains("test forks::leaks_while_its_child_returns ... FAILED"), "{text}");
}

#[test]
fn tests_run_in_the_executable_of_their_harness_after_a_build_has_replaced_it() {
    let programs = Programs::of("replaced");
    let mut build = programs.cargo_test();
    let built = build.args(["--no-run", "--message-format", "json"]).output().expect("cargo runs");
    let built = String::from_utf8_lossy(&built.stdout).into_owned();
    let mut executables = built.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        line["executable"].as_str().map(str::to_owned)
    });
    let copy = programs.path().join("copied");
    std::fs::copy(executables.next_back().expect("an executable"), &copy).expect("it is copied");
    let mut harness = std::process::Command::new(&copy);
    harness.args(["replaced::", "--test-threads=1", "--nocapture"]).current_dir(programs.path());
    harness.env_remove("CI").env("MEMCHECK_CONFIG_FILE", programs.path().join("memcheck.toml"));
    let run = harness.env("MEMCHECK_EXPLAIN", "always").output().expect("it runs");
    let text = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    assert!(text.contains("test result: FAILED. 3 passed; 1 failed"), "{text}");
    for line in [
        &format!("named {} copied", copy.display()),
        "leak: host grows by 4,096 B",
        "memcheck: the test installs its own `tracing` subscriber, so it is run again",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}
