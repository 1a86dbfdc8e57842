//! cuBLASLt on the simulated device, through cudarc's `CudaBlasLT`: values, the bytes of workspaces,
//! a leak of one, and the mark of an estimated size.

use crate::fixture::{Programs, Run};

/// The workspaces that cudarc allocates, before Hopper and from it on.
const BEFORE_HOPPER: u64 = 4_194_304;
const HOPPER: u64 = 33_554_432;

fn run(device: &str, tests: &[&str]) -> Run {
    let filters: Vec<String> = tests.iter().map(|test| format!("cublaslt::{test}")).collect();
    let filters: Vec<&str> =
        ["--exact"].into_iter().chain(filters.iter().map(String::as_str)).collect();
    Programs::of_cuda("cublaslt").run(device, &filters)
}

#[test]
fn linear_layers_are_computed_and_their_workspaces_are_counted() {
    let run_on = |device: &str, workspace: u64| {
        let run = run(device, &["values", "workspace", "another_thread"]).exits(0);
        for test in ["values", "workspace", "another_thread"] {
            let line = run.test(test);
            assert_eq!(line["status"], "passed", "{line}");
            assert!(line.get("values").is_none(), "{test} reads unknown values: {line}");
            let marks = line["estimates"].to_string();
            assert!(
                !marks.contains("peak_allocated"),
                "{test}: the program chose the size: {marks}"
            );
        }
        // Two inputs, and the output of an iteration.
        let tensors = (64 * 4096 + 64 + 64 * 64) * 4;
        let metrics = run.test("workspace")["metrics"]["cuda:0"].clone();
        assert_eq!(metrics["peak_allocated"], workspace + tensors, "{metrics}");
        assert_eq!(metrics["allocated_total"], 64 * 64 * 4, "{metrics}");
    };
    run_on("sim:t4", BEFORE_HOPPER);
    run_on("sim:h200", HOPPER);
}

#[test]
fn a_leak_of_workspaces_is_found_at_its_line() {
    let programs = Programs::of_cuda("cublaslt");
    let run = programs.run("sim:t4", &["--exact", "cublaslt::keeps_its_workspaces"]).exits(100);
    assert_eq!(run.codes("keeps_its_workspaces"), ["leak"]);
    let finding = run.test("keeps_its_workspaces")["findings"][0].clone();
    assert_eq!(finding["bytes_per_iteration"], BEFORE_HOPPER, "{finding}");
    assert_eq!(finding["sites"][0]["line"], programs.line("created"), "{finding}");
}

#[test]
fn figures_with_a_workspace_of_estimated_size_are_marked() {
    let run = run("sim:t4", &["workspace_of_the_heuristic"]).exits(0);
    let line = run.test("workspace_of_the_heuristic");
    let marks = line["estimates"].to_string();
    assert!(marks.contains("peak_allocated") && marks.contains("allocated_total"), "{line}");
}
