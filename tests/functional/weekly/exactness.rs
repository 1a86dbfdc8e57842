//! Thirty runs on each device must have identical figures, and ten runs of the corpus of leaks
//! identical findings. Ignored: `just exactness`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::detection;
use crate::fixture::{memcheck_with, workspace};

/// The figures that must be the same in every run.
const FIGURES: [&str; 4] = ["allocated", "peak_allocated", "growth", "retained"];

/// The figures of the judged space of every workload, by test.
fn figures(device: &str, space: &str, threads: &str) -> BTreeMap<String, Vec<u64>> {
    let arguments = [
        "run",
        "-p",
        "memcheck-tests",
        "--test",
        "workloads",
        "--device",
        device,
        "--message-format",
        "json",
        "--ci",
        "-A",
        "uncomparable-baseline",
    ];
    let run = memcheck_with(&workspace(), &arguments, &[("RAYON_NUM_THREADS", threads)]).exits(0);
    run.json()
        .iter()
        .filter(|line| line["type"] == "test-finished" && line["status"] == "passed")
        .map(|line| {
            // A body without a device is judged on the host on every leg.
            let metrics: &Value = line["metrics"].get(space).unwrap_or(&line["metrics"]["host"]);
            let name = line["test"].as_str().expect("a name").to_owned();
            (name, FIGURES.map(|figure| metrics[figure].as_u64().expect("a figure")).to_vec())
        })
        .collect()
}

const RUNS_OF_LEAKS: usize = 10;

/// On the host, the system decides when a thread waits and whether the queues of a pool get longer,
/// and with it the small blocks of these tests. Their device memory is exact.
const SCHEDULED: [&str; 2] = ["leaky::list_behind_a_pool", "leaky::worker_that_outlives_its_epoch"];

/// The findings of the corpus of leaks, by test: messages, figures, and call sites in their order.
fn findings(device: &str, threads: &str) -> BTreeMap<String, Value> {
    // A mean rate is that of as many iterations as there was time for, which differs on a busy
    // machine.
    let evidence = ["--evidence", "10m"];
    let run = detection::run(device, &evidence, &[("RAYON_NUM_THREADS", threads)]);
    let lines = run.json();
    let finished = lines.iter().filter(|line| line["type"] == "test-finished");
    let by_test = finished
        .map(|line| (line["test"].as_str().expect("a name").to_owned(), line["findings"].clone()));
    by_test.filter(|(test, _)| device != "cpu" || !SCHEDULED.contains(&test.as_str())).collect()
}

fn assert_thirty_runs_agree(device: &str, space: &str) {
    let first = figures(device, space, "1");
    assert!(first.len() >= 13, "{} tests", first.len());
    let first_findings = findings(device, "1");
    assert!(first_findings.len() >= 90, "{} tests", first_findings.len());
    for run in 1..30 {
        let threads = ["1", "2", "4"][run % 3];
        assert_eq!(figures(device, space, threads), first, "run {run}, {threads} threads");
        if run < RUNS_OF_LEAKS {
            let findings = findings(device, threads);
            assert_eq!(findings.len(), first_findings.len(), "tests in run {run}");
            for (test, found) in findings {
                assert_eq!(found, first_findings[&test], "{test} in run {run}, {threads} threads");
            }
        }
    }
    eprintln!("{device}: 30 runs of {} tests are bit-identical", first.len());
    eprintln!(
        "{device}: {RUNS_OF_LEAKS} runs of {} tests have identical findings",
        first_findings.len()
    );
}

#[test]
#[ignore = "takes half an hour"]
fn figures_are_identical_in_thirty_runs_on_the_cpu() {
    assert_thirty_runs_agree("cpu", "host");
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn figures_are_identical_in_thirty_runs_on_the_simulated_gpu() {
    assert_thirty_runs_agree("sim:h200", "cuda:0");
}
