//! Several devices in one run: each is built, run and judged before the next one is built, and a
//! build shows its progress.

use crate::fixture::{CLEAN_AND_LEAKY, Project, memcheck, memcheck_signaled};

const ONE: &str = "#[mem_test(baseline = false)]\nfn a() {}\n";
const BOTH: [&str; 7] = ["run", "--device", "cpu", "--device", "sim", "--message-format", "json"];

/// A source that differs from that of any earlier run, so that cargo has to compile it.
fn new(source: &str) -> String {
    format!("{source}// {:?}\n", std::time::SystemTime::now())
}

/// A project whose build script runs `then` in a build for the simulated device.
fn with_cuda_build(tests: &str, then: &str) -> Project {
    let project = Project::new(tests);
    project.write(
        "build.rs",
        &format!(
            "fn main() {{
    println!(\"cargo::rerun-if-env-changed=NVCC\");
    if std::env::var(\"NVCC\").is_ok_and(|path| path.contains(\"memcheck/toolkit\")) {{
        {then}
    }}
}}
"
        ),
    );
    project
}

#[track_caller]
fn position(stderr: &str, text: &str) -> usize {
    stderr.find(text).unwrap_or_else(|| panic!("`{text}` is not in stderr:\n{stderr}"))
}

#[test]
fn the_results_of_a_leg_are_reported_before_the_next_build() {
    let project = with_cuda_build(&new(ONE), "panic!(\"the CUDA build fails on purpose\");");
    let run = memcheck(project.path(), &BOTH).exits(101);
    let expected = [
        "building the tests for cpu (leg 1 of 2)…",
        "ok on cpu: 1 passed, 0 failed in ",
        "the CUDA build fails on purpose",
        "error: the build for the simulated CUDA device failed",
        "not ok: 1 passed, incomplete in ",
        "not run on sim:h200: the run ended early",
    ];
    let positions: Vec<usize> = expected.iter().map(|text| position(&run.stderr, text)).collect();
    assert!(positions.is_sorted(), "{positions:?}\n{}", run.stderr);
    assert_eq!(run.test("a")["status"], "passed");
    let started = run.json().iter().filter(|line| line["type"] == "run-started").count();
    assert_eq!(started, 1, "{}", run.stdout);
    let summary = run.summary();
    assert_eq!((&summary["passed"], &summary["exit_code"]), (&1.into(), &101.into()));
    assert_eq!(summary["error"]["message"], "the build for the simulated CUDA device failed");
    // A report of the results must fail as well.
    let report = project.memcheck(&["report", "--message-format", "json"]).exits(101);
    assert_eq!(report.summary(), summary);
    report.prints("error: the build for the simulated CUDA device failed");
}

#[test]
fn fail_fast_skips_the_build_of_the_next_leg() {
    let project = with_cuda_build(CLEAN_AND_LEAKY, "panic!(\"the second build started\");");
    let run = memcheck(project.path(), &[&BOTH[..], &["--fail-fast"]].concat()).exits(100);
    assert!(!run.stderr.contains("the second build started"), "{}", run.stderr);
    let run = run.prints("not ok on cpu: ").prints("not run on sim:h200: the run ended early");
    assert_eq!(run.summary().get("error"), None);
}

#[test]
fn an_interrupt_of_the_next_build_keeps_the_measured_results() {
    let wait = "std::fs::write(\"building\", \"\").unwrap();
        std::thread::sleep(std::time::Duration::from_secs(60));";
    let project = with_cuda_build(ONE, wait);
    let run = memcheck_signaled(project.path(), &BOTH, "building", "-TERM").exits(130);
    let run = run.prints("ok on cpu: 1 passed").prints("interrupted: the counts are incomplete");
    let summary = run.summary();
    assert_eq!((&summary["passed"], &summary["interrupted"]), (&1.into(), &true.into()));
}

#[test]
fn the_log_has_a_line_at_the_start_and_at_the_end_of_a_build() {
    let project = Project::new(&new(ONE));
    let run = project.run(&[]).exits(0).prints("building the tests for cpu…");
    let run = run.prints("built the tests for cpu: ").prints(" in ");
    assert!(!run.stderr.contains("Compiling"), "{}", run.stderr);
    let fresh = project.run(&[]).exits(0);
    assert!(!fresh.stderr.contains("built the tests"), "{}", fresh.stderr);
    // Cargo's warnings about the sources must still be shown.
    project.write("src/lib.rs", "//! A user's package.\nfn unused() {}\n");
    let warned = project.run(&["--verbose"]).exits(0).prints("function `unused` is never used");
    warned.prints("Compiling");
    project.write("src/lib.rs", "//! A user's package.\n");
    let quiet = project.run(&["--quiet"]).exits(0);
    let is_progress = |line: &str| line.starts_with("building ") || line.starts_with("built ");
    assert!(!quiet.stderr.lines().any(is_progress), "{}", quiet.stderr);
}

/// Cargo prints the warnings of the build script of a package in a folder again in each build.
#[test]
fn a_warning_of_another_packages_build_script_is_printed_when_it_is_built() {
    let script = |text: &str| {
        new(&format!(
            "fn main() {{
    println!(\"cargo::rerun-if-changed=build.rs\");
    println!(\"cargo::warning={text}\");
}}
"
        ))
    };
    let other = Project::bare("");
    other.write("build.rs", &script("of the other"));
    let project = Project::bare(&format!(
        "other = {{ package = \"{}\", path = \"{}\" }}\n\
         [dev-dependencies]\nmemcheck-runtime = {{ path = \"RUNTIME\" }}\n",
        other.name(),
        other.path().display()
    ));
    project.write("build.rs", &script("of the package"));
    let test = "#[memcheck_runtime::mem_test(baseline = false)]\nfn a() {}\n";
    project.write("tests/mem.rs", test);
    let run = |arguments: &[&str]| project.run(arguments).exits(0).prints("0.1.0: of the package");
    let of_other = format!("warning: {}@0.1.0: of the other", other.name());
    run(&[]).prints(&of_other);
    let again = run(&[]);
    assert!(!again.stderr.contains(&of_other), "{}", again.stderr);
    run(&["--verbose"]).prints(&of_other);
    other.write("build.rs", &script("of the other script"));
    run(&[]).prints(&format!("{of_other} script"));
}
