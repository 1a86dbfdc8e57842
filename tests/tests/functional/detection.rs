//! Every leak of the corpus (`memcheck_tests::scenarios`) is found with its
//! code and its exact bytes, every fixed twin passes, on the CPU and on the
//! simulated GPU.

use memcheck_tests::scenarios::shapes::REMARKED;
use memcheck_tests::scenarios::{self, Agreement, Leg, Scenario};

use crate::fixture::{Run, memcheck, workspace};

fn run(device: &str) -> Run {
    memcheck(
        &workspace(),
        &[
            "run",
            "-p",
            "memcheck-tests",
            "--test",
            "detection",
            "--device",
            device,
            "--message-format",
            "json",
            "--no-ci",
            "--run-ignored",
            "all",
        ],
    )
    .exits(100)
}

/// Asserts all that a scenario knows of its leak.
fn assert_found(scenario: &Scenario, judged: Leg, run: &Run) {
    let finished = run.test(&scenario.leaky_test());
    let Agreement { found, bytes, line, pattern, cause } = scenario.compare(judged, &finished);
    let (expected, findings) = ((scenario.bytes)(judged), &finished["findings"]);
    assert!(found, "{}: {findings}", scenario.name);
    assert!(line, "{}: not line {}: {findings}", scenario.name, scenario.line);
    assert_ne!(pattern, Some(false), "{}: {findings}", scenario.name);
    assert!(cause, "{}: not {}: {findings}", scenario.name, scenario.cause.code());
    assert!(bytes, "{}: {expected} bytes are expected: {findings}", scenario.name);
}

fn assert_leg(run: &Run, leg: Leg) {
    let mut tests = 0;
    for scenario in scenarios::all() {
        let Some(judged) = scenario.judged_on(leg) else { continue };
        tests += 1;
        assert_eq!(run.codes(&scenario.fixed_test()), [""; 0], "{}", scenario.name);
        assert_eq!(run.test(&scenario.fixed_test())["status"], "passed", "{}", scenario.name);
        assert_found(scenario, judged, run);
    }
    // No test of the target is without its scenario.
    let of = |twin: &str| {
        let lines = run.json();
        let named = |line: &serde_json::Value| {
            line["test"].as_str().is_some_and(|test| test.starts_with(twin))
        };
        lines.iter().filter(|line| line["type"] == "test-finished" && named(line)).count()
    };
    assert_eq!((of("leaky::"), of("fixed::")), (tests, tests));
    assert_eq!(run.test("clean::clean_program")["status"], "passed");
    for remarked in REMARKED {
        for test in [remarked.uneven_test(), remarked.even_test()] {
            assert_eq!(run.test(&test)["status"], "passed", "{test}");
        }
    }
}

/// The codes of what a profile remarks on.
fn remarks(device: &str, test: &str) -> Vec<String> {
    let run = memcheck(
        &workspace(),
        &[
            "profile",
            "-p",
            "memcheck-tests",
            "--test",
            "detection",
            "--device",
            device,
            "--message-format",
            "json",
            test,
        ],
    )
    .exits(0);
    let growth = run.json()[0]["spaces"][0]["growth"].clone();
    assert_eq!(growth["bytes_per_iteration"], 0, "{growth}");
    let survivors = growth["survivors"].as_array().expect("survivors are a list").clone();
    let codes = survivors.iter().filter_map(|survivor| survivor["remark"]["code"].as_str());
    codes.map(str::to_owned).collect()
}

#[test]
fn what_only_looks_like_growth_is_remarked_on() {
    for device in ["cpu", "sim:h200"] {
        for remarked in REMARKED {
            let code = remarked.cause.code();
            assert_eq!(remarks(device, &remarked.uneven_test()), [code], "{device}");
            assert_eq!(remarks(device, &remarked.even_test()), [""; 0], "{device}");
        }
    }
}

#[test]
fn on_the_cpu() {
    assert_leg(&run("cpu"), Leg::Host);
}

#[test]
fn on_the_simulated_gpu() {
    assert_leg(&run("sim:h200"), Leg::Device);
}
