//! A guide to profiling the memory of transformers: each row of `docs/guide.md` has its test here.
//!
//! The rows share the runs of other tests: the corpus of leaks, the negative controls, and the
//! workloads below. Each test asserts the claim of its row.

mod pairs;
mod program;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use memcheck_tests::mixed_precision::step_peak_bytes;
use memcheck_tests::scenarios::{Family, small_bytes};
use memcheck_tests::training::{KEPT_LOSS_BYTES, KEPT_LOSS_SCALAR_BYTES};

use crate::controls;
use crate::detection::space;
use crate::documentation::rows;
use crate::fixture::{Run, memcheck, workspace};

const LEGS: [Family; 2] = [Family::Cpu, Family::Cuda];

fn device(leg: Family) -> &'static str {
    match leg {
        Family::Cpu => "cpu",
        Family::Cuda => "sim:h200",
    }
}

/// The run of the workloads on a leg, which all rows share.
fn workloads(leg: Family) -> &'static Run {
    static RUNS: [OnceLock<Run>; 2] = [const { OnceLock::new() }; 2];
    let slot = match leg {
        Family::Cpu => &RUNS[0],
        Family::Cuda => &RUNS[1],
    };
    slot.get_or_init(|| {
        let options = ["--message-format", "json", "--no-ci", "--run-ignored", "all"];
        let tests =
            ["helpers::", "mixed_precision::", "checkpointing::", "bert::", "training::step"];
        // The figures do not depend on values, and computing these takes half of the time on `sim`.
        let values = if leg == Family::Cuda { &["--values", "never"][..] } else { &[] };
        run_workloads(leg, &[&options[..], values, &tests].concat()).exits(100)
    })
}

fn run_workloads(leg: Family, arguments: &[&str]) -> Run {
    let target = ["run", "-p", "memcheck-tests", "--test", "workloads", "--device", device(leg)];
    memcheck(&workspace(), &[&target[..], arguments].concat())
}

/// Asserts that the workloads passed on a leg.
fn assert_passed(leg: Family, tests: &[&str]) {
    for test in tests {
        let finished = workloads(leg).test(test);
        assert_eq!(finished["status"], "passed", "{test}: {}", finished["findings"]);
    }
}

fn peak(test: &str) -> u64 {
    let peak = workloads(Family::Cuda).test(test)["metrics"]["cuda:0"]["peak_allocated"].clone();
    peak.as_u64().unwrap_or_else(|| panic!("{test} has no peak"))
}

#[test]
fn row_05_the_peak_of_a_forward_pass_is_its_baseline() {
    for (leg, suffix) in LEGS.into_iter().zip(["cpu", "cuda"]) {
        assert_passed(leg, &["bert::forward"]);
        let metrics = workloads(leg).test("bert::forward")["metrics"][space(leg)].clone();
        let peak = metrics["peak_allocated"].as_u64().expect("a peak");
        let snapshot =
            format!("tests/tests/workloads/snapshots/workloads__bert__forward@{suffix}.snap");
        let baseline = std::fs::read_to_string(workspace().join(snapshot)).expect("a baseline");
        assert!(baseline.contains(&format!("peak_allocated: {peak}\n")), "{peak}:\n{baseline}");
        // At the peak, and one byte below.
        for (limit, code) in [(peak, 0), (peak - 1, 100)] {
            let limit = format!("{limit} B");
            let arguments = ["--exact", "bert::forward", "--no-ci", "--max-peak", &limit];
            let run = run_workloads(leg, &arguments).exits(code);
            assert_eq!(run.stderr.contains("peak-limit"), code != 0, "{}", run.stderr);
        }
    }
}

#[test]
fn row_06_growth_over_iterations_above_a_mebibyte_is_a_leak() {
    for leg in LEGS {
        let leaky = controls::on(leg).test("training_keeps_losses");
        let finding = &leaky["findings"][0];
        assert_eq!((&finding["code"], &finding["limit"]), (&"leak".into(), &(1 << 20).into()));
        let leak = KEPT_LOSS_BYTES as u64 + small_bytes(leg, KEPT_LOSS_SCALAR_BYTES as u64);
        assert_eq!(finding["bytes_per_iteration"], leak);
        // The formula of the guide, (last - first) / n, gives a tenth less.
        let spaces = leaky["iterations"].as_array().expect("iterations by space");
        let series = spaces.iter().find(|one| one["space"] == space(leg)).expect("the space");
        let live: Vec<u64> = serde_json::from_value(series["allocated"].clone()).expect("bytes");
        assert_eq!((live.len(), live[9] - live[0]), (10, 9 * leak));

        assert_passed(leg, &["training::step"]);
        assert_eq!(workloads(leg).test("training::step")["metrics"][space(leg)]["growth"], 0);
    }
}

#[test]
fn row_11_half_types_take_less_and_mixed_precision_trains() {
    // Inputs are u32 with every type, three kinds of 8 x 128. The 96 bytes belong to a kernel.
    let forward = |dtype: &str| peak(&format!("bert::base_forward_s128::dtype_{dtype}_batch_8"));
    let (wide, half) = (forward("f32"), forward("f16"));
    assert_eq!(2 * half - wide, 3 * 8 * 128 * 4 + 96);
    assert_eq!(forward("bf16"), half);

    let step = |dtype: &str| peak(&format!("mixed_precision::step::dtype_{dtype}"));
    for dtype in ["f32", "bf16", "f16"] {
        assert_passed(Family::Cuda, &[&format!("mixed_precision::step::dtype_{dtype}")]);
        let formula = step_peak_bytes(dtype.parse().expect("a dtype")) as u64;
        assert_eq!(step(dtype), formula, "{dtype}");
    }
    assert!(10 * step("bf16") < 7 * step("f32"));
}

/// The test functions that are named after rows, in all files that have them.
fn tests_of_rows() -> BTreeSet<String> {
    let sources = [
        include_str!("guide.rs"),
        include_str!("guide/pairs.rs"),
        include_str!("guide/program.rs"),
        include_str!("../../cargo-memcheck/src/presentation/presenters/profile/tests.rs"),
        include_str!("fit.rs"),
        include_str!("plan.rs"),
    ];
    let names = sources.iter().flat_map(|source| source.lines()).filter_map(|line| {
        let (name, _) = line.strip_prefix("fn row_")?.split_once('(')?;
        Some(format!("row_{name}"))
    });
    names.collect()
}

#[test]
fn the_guide_and_its_tests_have_the_same_rows() {
    let page = std::fs::read_to_string(workspace().join("docs/guide.md")).expect("docs/guide.md");
    let table = rows(&page, "| # | in PyTorch | here | test |\n");
    let mut named = BTreeSet::new();
    for (row, number) in table.iter().zip(1..) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [at, _, _, test] = cells[..] else { panic!("a row must have four cells: {row}") };
        assert_eq!(at, number.to_string());
        let test = test.trim_matches('`').to_owned();
        assert!(test.starts_with(&format!("row_{number:02}_")), "{row}");
        named.insert(test);
    }
    assert_eq!(table.len(), 18);
    assert_eq!(named, tests_of_rows());
}
