//! Every leak of the corpus (`memcheck_tests::scenarios`) must be found with its code and its exact
//! bytes, and every fixed twin must pass, on the CPU and on the simulated GPU.

use std::sync::OnceLock;

use memcheck_tests::scenarios::shapes::{REMARKED, UNEVEN, Uneven};
use memcheck_tests::scenarios::{self, Agreement, Family, Scenario};

use crate::fixture::{Run, memcheck, memcheck_with, workspace};

/// Runs the corpus on a device, with additional arguments and variables.
pub(crate) fn run(device: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let of_corpus = ["run", "-p", "memcheck-tests", "--test", "detection", "--run-ignored", "all"];
    let reported = ["--device", device, "--message-format", "json", "--no-ci"];
    let all = [&of_corpus, reported.as_slice(), arguments].concat();
    memcheck_with(&workspace(), &all, variables).exits(100)
}

/// The run of a leg, which all tests of this process share.
pub(crate) fn on(leg: Family) -> &'static Run {
    static RUNS: [OnceLock<Run>; 2] = [const { OnceLock::new() }; 2];
    match leg {
        Family::Cpu => RUNS[0].get_or_init(|| run("cpu", &[], &[])),
        Family::Cuda => RUNS[1].get_or_init(|| run("sim:h200", &[], &[])),
    }
}

/// Asserts that a leak is found with everything that its scenario expects, and that its fixed twin
/// has no findings and no growth. Returns false if the scenario does not run on `leg`.
pub(crate) fn assert_pair(scenario: &Scenario, leg: Family) -> bool {
    let Some(judged) = scenario.judged_on(leg) else { return false };
    let (run, fixed) = (on(leg), scenario.fixed_test());
    assert_eq!(run.codes(&fixed), [""; 0], "{fixed}");
    let finished = run.test(&fixed);
    assert_eq!(finished["status"], "passed", "{fixed}");
    assert_eq!(finished["metrics"][space(judged)]["growth"], 0, "{fixed}");
    assert_found(scenario, judged, run);
    true
}

/// Asserts that a healthy program passes, with the live bytes and the peaks of its formulas in
/// every iteration. They are uneven, but the run must have no findings.
pub(crate) fn assert_uneven(uneven: &Uneven, leg: Family) {
    let finished = on(leg).test(&uneven.test());
    assert_eq!(finished["status"], "passed", "{}", uneven.name);
    assert_eq!(finished["findings"], serde_json::json!([]), "{}", uneven.name);
    assert_eq!(finished["metrics"][space(leg)]["growth"], 0, "{}", uneven.name);
    let spaces = finished["iterations"].as_array().expect("iterations by space");
    let series = spaces.iter().find(|one| one["space"] == space(leg)).expect("the judged space");
    // Two of warm-up, ten measured.
    let measured = |formula: fn(usize) -> u64| (2..12).map(formula).collect::<Vec<_>>();
    assert_eq!(series["allocated"], serde_json::json!(measured(uneven.live)), "{}", uneven.name);
    assert_eq!(series["peak"], serde_json::json!(measured(uneven.peak)), "{}", uneven.name);
    let peaks = measured(uneven.peak);
    assert!(peaks.iter().min() < peaks.iter().max(), "{} is even", uneven.name);
}

pub(crate) fn space(judged: Family) -> &'static str {
    match judged {
        Family::Cpu => "host",
        Family::Cuda => "cuda:0",
    }
}

fn assert_found(scenario: &Scenario, judged: Family, run: &Run) {
    let finished = run.test(&scenario.leaky_test());
    let Agreement { found, bytes, line, pattern, cause } = scenario.compare(judged, &finished);
    let (expected, findings) = ((scenario.bytes)(judged), &finished["findings"]);
    assert!(found, "{}: {findings}", scenario.name);
    assert!(line, "{}: the top site is not line {}: {findings}", scenario.name, scenario.line);
    assert_ne!(pattern, Some(false), "{}: {findings}", scenario.name);
    assert!(cause, "{}: the cause is not {}: {findings}", scenario.name, scenario.cause);
    assert!(bytes, "{}: {expected} bytes are expected: {findings}", scenario.name);
}

fn assert_leg(leg: Family) {
    let run = on(leg);
    let tests = scenarios::all().filter(|scenario| assert_pair(scenario, leg)).count();
    UNEVEN.iter().for_each(|uneven| assert_uneven(uneven, leg));
    // Every test of the target must have a scenario.
    let count_of = |twin: &str| {
        let lines = run.json();
        let named = |line: &serde_json::Value| {
            line["test"].as_str().is_some_and(|test| test.starts_with(twin))
        };
        lines.iter().filter(|line| line["type"] == "test-finished" && named(line)).count()
    };
    assert_eq!((count_of("leaky::"), count_of("fixed::")), (tests, tests));
    assert_eq!(run.test("clean::clean_program")["status"], "passed");
    for remarked in REMARKED {
        for test in [remarked.uneven_test(), remarked.even_test()] {
            assert_eq!(run.test(&test)["status"], "passed", "{test}");
        }
    }
}

/// The codes of the remarks of a profile.
pub(crate) fn remarks(device: &str, test: &str) -> Vec<String> {
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
fn memory_that_only_seems_to_grow_has_a_remark() {
    for device in ["cpu", "sim:h200"] {
        for remarked in REMARKED {
            let code = remarked.cause;
            assert_eq!(remarks(device, &remarked.uneven_test()), [code], "{device}");
            assert_eq!(remarks(device, &remarked.even_test()), [""; 0], "{device}");
        }
    }
}

#[test]
fn every_leak_is_found_and_every_twin_passes_on_the_cpu() {
    assert_leg(Family::Cpu);
}

#[test]
fn every_leak_is_found_and_every_twin_passes_on_the_simulated_gpu() {
    assert_leg(Family::Cuda);
}
