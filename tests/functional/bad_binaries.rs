//! Test binaries that die, hang, are killed, or write half a record. Each must have its finding and
//! its exit code, and none may pass.

use crate::fixture::{Programs, Project, Run, is_running};

fn programs() -> Programs {
    Programs::of("bad_binaries")
}

/// Runs these tests, and one that passes.
fn run(programs: &Programs, tests: &[&str], more: &[&str]) -> Run {
    let filters: Vec<String> = tests.iter().map(|test| format!("bad_binaries::{test}")).collect();
    let filters = filters.iter().map(String::as_str).chain(["bad_binaries::bystander"]);
    let run = programs.run("cpu", &filters.chain(more.iter().copied()).collect::<Vec<_>>());
    assert_eq!(run.test("bystander")["status"], "passed");
    assert_eq!(run.summary()["exit_code"], run.code);
    run
}

#[test]
fn a_test_that_dies_or_hangs_has_failed_and_its_children_are_killed() {
    let programs = programs();
    let outcomes: [(&str, &[&str]); 7] = [
        ("aborts", &["crashed"]),
        ("is_killed", &["crashed"]),
        ("overflows_its_stack", &["crashed"]),
        ("hangs", &["timed-out"]),
        ("other_panic", &["test-failed"]),
        // Findings before a time-out are reported with it.
        ("leaks_and_hangs", &["timed-out", "leak"]),
        ("expected_panic", &[]),
    ];
    let run = run(&programs, &outcomes.map(|(test, _)| test), &["--explain", "never"]).exits(100);
    for (test, codes) in outcomes {
        assert_eq!(run.codes(test), codes, "{test}");
        let status = if codes.is_empty() { "passed" } else { "failed" };
        assert_eq!(run.test(test)["status"], status, "{test}");
    }
    assert_eq!(run.test("leaks_and_hangs")["metrics"]["host"]["growth"], 4096);
    assert!(!is_running(&programs.read("child")), "the child still runs");
}

#[test]
fn a_test_without_a_whole_report_is_not_measured() {
    let programs = programs();
    let early = ["exits_early", "never_iterates"];
    let reports = ["truncates_its_report", "reports_in_another_version"];
    let tests = [&early[..], &reports].concat();
    let run = run(&programs, &[&tests[..], &["gives_up"]].concat(), &[]).exits(104);
    for test in tests {
        assert_eq!(run.codes(test), ["not-measured"], "{test}");
        assert_eq!(run.test(test)["status"], "not-measured", "{test}");
    }
    assert_eq!(run.codes("gives_up")[0], "not-measured");
    assert!(!programs.have_snapshots(), "there is a pending snapshot");
}

#[test]
fn an_interrupt_stops_the_tests_and_prints_the_summary_so_far() {
    let programs = programs();
    let arguments = ["run", "bad_binaries::interrupted", "--device", "cpu", "--test-threads", "1"];
    let arguments = [&arguments[..], &["--message-format", "json", "--no-ci"]].concat();
    let run = programs.interrupted(&arguments, "child").exits(130);
    assert_eq!(run.test("a_first")["status"], "passed");
    let summary = run.summary();
    assert_eq!((&summary["interrupted"], &summary["passed"]), (&true.into(), &1.into()));
    assert_eq!(summary["not_run"], 2);
    assert!(!is_running(&programs.read("child")), "the test still runs");
}

#[test]
fn a_report_of_another_device_does_not_count_for_this_device() {
    let once = ["bad_binaries::once", "--device", "sim:l4"];
    let run = programs().run("sim:t4", &once).exits(104);
    assert_eq!(run.summary()["not_measured"], 1);
}

#[test]
fn a_test_is_measured_only_with_a_tracking_allocator() {
    let project = Project::bare(
        "[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\", default-features = false, features = [\"candle\"] }\n",
    );
    project.write(
        "tests/none.rs",
        "#[memcheck_runtime::mem_test(baseline = false)]\nfn without_an_allocator() {}\n",
    );
    project.write(
        "tests/own.rs",
        "use memcheck_runtime::{Tracking, mem_test};
#[global_allocator]
static ALLOCATOR: Tracking<std::alloc::System> = Tracking::new(std::alloc::System);
#[mem_test(baseline = false)]
fn eight_kibibytes() {
    std::hint::black_box(vec![0u8; 8192]);
}
",
    );
    let run = project.run(&[]).exits(104);
    assert_eq!(run.codes("without_an_allocator"), ["not-measured"]);
    let own = run.test("eight_kibibytes");
    assert_eq!(own["status"], "passed", "{own}");
    assert_eq!(own["metrics"]["host"]["peak_allocated"], 8192);
}
