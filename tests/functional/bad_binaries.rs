//! Test binaries that die, hang, are killed, or write half a record. Each must have its finding and
//! its exit code, and none may pass.

use crate::fixture::{Programs, Project, memcheck_interrupted};

fn programs() -> Programs {
    Programs::of("bad_binaries")
}

#[track_caller]
fn assert_outcome(test: &str, code: &str, exit: u8) {
    let rogue = format!("bad_binaries::{test}");
    let run = programs().run("cpu", &[&rogue, "bad_binaries::bystander"]).exits(exit);
    assert_eq!(run.codes(test), [code]);
    assert_eq!(run.test("bystander")["status"], "passed");
    assert_eq!(run.summary()["exit_code"], exit);
}

#[test]
fn a_binary_that_aborts_has_crashed() {
    assert_outcome("aborts", "crashed", 100);
}

#[test]
fn a_binary_that_is_killed_has_crashed() {
    assert_outcome("is_killed", "crashed", 100);
}

#[test]
fn a_binary_that_overflows_its_stack_has_crashed() {
    assert_outcome("overflows_its_stack", "crashed", 100);
}

#[test]
fn a_binary_that_hangs_is_killed_with_its_children() {
    let project = Project::new(
        "#[mem_test(baseline = false, timeout = \"6s\")]
fn rogue(_trial: &mut Trial) -> Result<(), String> {
    let child = std::process::Command::new(\"sleep\").arg(\"300\").spawn().unwrap();
    std::fs::write(\"child\", child.id().to_string()).unwrap();
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1))
    }
}
",
    );
    let run = project.run(&[]).exits(100);
    assert_eq!(run.codes("rogue"), ["timed-out"]);
    let child = project.read("child");
    let state = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "the child still runs: {state}");
}

#[test]
fn findings_before_a_time_out_are_reported_with_it() {
    let arguments = ["bad_binaries::leaks_and_hangs", "--explain", "never"];
    let run = programs().run("cpu", &arguments).exits(100);
    assert_eq!(run.codes("leaks_and_hangs"), ["timed-out", "leak"]);
    assert_eq!(run.test("leaks_and_hangs")["metrics"]["host"]["growth"], 4096);
}

#[test]
fn an_interrupt_stops_the_tests_and_prints_the_summary_so_far() {
    let project = Project::new(
        "#[mem_test(baseline = false)]
fn a_first() {}
#[mem_test(baseline = false)]
fn b_second() {
    std::fs::write(\"child\", std::process::id().to_string()).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(600));
}
#[mem_test(baseline = false)]
fn c_third() {}
",
    );
    let arguments =
        ["run", "--device", "cpu", "--message-format", "json", "--no-ci", "--test-threads", "1"];
    let run = memcheck_interrupted(project.path(), &arguments, "child").exits(130);
    assert_eq!(run.test("a_first")["status"], "passed");
    let summary = run.summary();
    assert_eq!((&summary["interrupted"], &summary["passed"]), (&true.into(), &1.into()));
    assert_eq!(summary["not_run"], 2);
    let state = std::fs::read_to_string(format!("/proc/{}/stat", project.read("child")));
    assert!(
        state.is_err() || state.is_ok_and(|state| state.contains(") Z ")),
        "the test still runs"
    );
}

#[test]
fn an_interrupted_build_is_not_reported_as_a_failed_build() {
    let project = Project::new("#[mem_test(baseline = false)]\nfn a() {}\n");
    // Ctrl-C reaches every process of a terminal. This test interrupts only the command, so the
    // build script ends by itself.
    project.write(
        "build.rs",
        "fn main() {
    std::fs::write(\"building\", \"\").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    panic!(\"interrupted\");
}
",
    );
    for command in [&["run"][..], &["profile", "a"]] {
        let arguments = ["--device", "cpu", "--message-format", "json"];
        let arguments = [command, &arguments].concat();
        let run = memcheck_interrupted(project.path(), &arguments, "building").exits(130);
        let summary = run.summary();
        assert_eq!((&summary["interrupted"], &summary["exit_code"]), (&true.into(), &130.into()));
        std::fs::remove_file(project.path().join("building")).unwrap();
    }
}

#[test]
fn a_binary_that_exits_early_with_success_is_not_measured() {
    assert_outcome("exits_early", "not-measured", 104);
}

#[test]
fn a_panic_with_another_message_fails_should_panic() {
    let tests = ["bad_binaries::other_panic", "bad_binaries::expected_panic"];
    let run = programs().run("cpu", &tests).exits(100);
    assert_eq!(run.codes("other_panic"), ["test-failed"]);
    assert_eq!(run.test("expected_panic")["status"], "passed");
}

#[test]
fn a_test_that_ends_its_iterations_early_is_not_measured() {
    let programs = programs();
    let tests = ["bad_binaries::gives_up", "bad_binaries::never_iterates"];
    let run = programs.run("cpu", &tests).exits(104);
    assert_eq!(run.codes("gives_up")[0], "not-measured");
    assert_eq!(run.codes("never_iterates"), ["not-measured"]);
    assert!(!programs.have_snapshots(), "there is a pending snapshot");
}

#[test]
fn a_report_of_another_device_does_not_count_for_this_device() {
    let project = Project::new(
        "#[mem_test(baseline = false)]
fn once(trial: &mut Trial) {
    if trial.device().is_cuda() && std::path::Path::new(\"ran\").exists() {
        std::process::exit(0);
    }
    std::fs::write(\"ran\", \"\").unwrap();
}
",
    );
    let arguments =
        ["run", "--device", "sim:t4", "--device", "sim:l4", "--message-format", "json", "--no-ci"];
    let run = project.memcheck(&arguments).exits(104);
    assert_eq!(run.summary()["not_measured"], 1);
}

#[test]
fn a_truncated_report_is_not_measured() {
    assert_outcome("truncates_its_report", "not-measured", 104);
}

#[test]
fn a_report_of_another_protocol_version_is_not_measured() {
    assert_outcome("reports_in_another_version", "not-measured", 104);
}

#[test]
fn a_test_without_the_tracking_allocator_is_not_measured() {
    let project = Project::bare(
        "[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\", default-features = false }\n",
    );
    project.write(
        "tests/mem.rs",
        "#[memcheck_runtime::mem_test(baseline = false)]\nfn without_an_allocator() {}\n",
    );
    let run = project.run(&[]).exits(104);
    assert_eq!(run.codes("without_an_allocator"), ["not-measured"]);
}

#[test]
fn a_test_with_its_own_tracking_allocator_is_measured() {
    let project = Project::bare(
        "[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\", default-features = false }\n",
    );
    project.write(
        "tests/mem.rs",
        "use memcheck_runtime::{Tracking, mem_test};
#[global_allocator]
static ALLOCATOR: Tracking<std::alloc::System> = Tracking::new(std::alloc::System);
#[mem_test(baseline = false)]
fn eight_kibibytes() {
    std::hint::black_box(vec![0u8; 8192]);
}
",
    );
    let run = project.run(&[]).exits(0);
    assert_eq!(run.test("eight_kibibytes")["metrics"]["host"]["peak_allocated"], 8192);
}
