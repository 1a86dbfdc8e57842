//! Thirty runs on each device must have identical figures. Ignored: `just exactness`.

use std::collections::BTreeMap;

use serde_json::Value;

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

fn assert_thirty_runs_agree(device: &str, space: &str) {
    let first = figures(device, space, "1");
    assert!(first.len() >= 13, "{} tests", first.len());
    for run in 1..30 {
        let threads = ["1", "2", "4"][run % 3];
        assert_eq!(figures(device, space, threads), first, "run {run}, {threads} threads");
    }
    eprintln!("{device}: 30 runs of {} tests are bit-identical", first.len());
}

#[test]
#[ignore = "takes a minute"]
fn figures_are_identical_in_thirty_runs_on_the_cpu() {
    assert_thirty_runs_agree("cpu", "host");
}

#[test]
#[ignore = "takes a minute"]
fn figures_are_identical_in_thirty_runs_on_the_simulated_gpu() {
    assert_thirty_runs_agree("sim:h200", "cuda:0");
}
