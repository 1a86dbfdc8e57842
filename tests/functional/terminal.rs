//! The output for people: ignored tests, repeated failures, written reports, filters and
//! subcommands that are mistyped, and the frames of an error.

use crate::fixture::{Project, memcheck_with};

const TESTS: &str = "
#[mem_test(max_growth = \"0 B\", baseline = false)]
fn leaky(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.push(Tensor::zeros(1024, DType::F32, &device)?);
        Ok(())
    })
}

#[mem_test(baseline = false)]
fn fails(device: &Device) -> candle_core::Result<()> {
    multiply(device)
}

fn multiply(device: &Device) -> candle_core::Result<()> {
    let (a, b) = (Tensor::zeros((2, 3), DType::F32, device)?, Tensor::zeros((4, 5), DType::F32, device)?);
    a.matmul(&b)?;
    Ok(())
}

#[mem_test(baseline = false)]
fn passes() {}
#[mem_test(baseline = false)]
#[ignore]
fn ignored_1() {}
#[mem_test(baseline = false)]
#[ignore]
fn ignored_2() {}
#[mem_test(baseline = false)]
#[ignore]
fn ignored_3() {}
#[mem_test(baseline = false)]
#[ignore]
fn ignored_4() {}
";

fn lines<'a>(text: &'a str, part: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(part)).collect()
}

#[test]
fn the_end_of_a_run_repeats_its_failures_and_lists_its_reports() {
    let project = Project::new(TESTS);
    let arguments = ["--device", "cpu", "--no-ci", "--report", "junit=out/junit.xml"];
    let run = project.memcheck(&arguments).exits(100);
    let name = project.name();
    let (_, end) =
        run.stderr.split_once("not ok: 1 passed, 2 failed, 4 ignored").expect("a verdict");
    let leaky = format!("leaky: leak  cargo memcheck profile -p {name} leaky --exact --device cpu");
    assert_eq!(lines(end, &leaky).len(), 1, "{end}");
    let fails = format!(
        "fails: test-failed  cargo memcheck run -p {name} fails --exact --no-capture --device cpu"
    );
    assert_eq!(lines(end, &fails).len(), 1, "{end}");
    assert_eq!(lines(end, "passes").len(), 0, "{end}");
    assert_eq!(lines(end, "report: out/junit.xml").len(), 1, "{end}");
    assert_eq!(lines(&run.stderr, "IGNORED").len(), 1, "{}", run.stderr);
    run.prints("4 tests (--verbose lists them, --run-ignored all runs them)");
    let verbose = project.memcheck(&["--device", "cpu", "--no-ci", "--verbose"]).exits(100);
    assert_eq!(lines(&verbose.stderr, "IGNORED").len(), 4, "{}", verbose.stderr);
    let passing = project.memcheck(&["--device", "cpu", "--no-ci", "passes"]).exits(0);
    assert_eq!(lines(&passing.stderr, "cargo memcheck").len(), 0, "{}", passing.stderr);

    // The next command of the first line is one that the command accepts.
    let profile = ["profile", "-p", name, "leaky", "--exact", "--device", "cpu"];
    project.memcheck(&profile).exits(100);

    let backtrace = [("RUST_BACKTRACE", "1")];
    let fails = ["run", "--device", "cpu", "--no-ci", "fails"];
    let run = memcheck_with(project.path(), &fails, &backtrace).exits(100);
    let (_, finding) = run.stderr.split_once("test-failed: ").expect("a finding");
    let finding = finding.split("output:").next().unwrap_or_default();
    assert!(finding.contains("at tests/mem.rs:") && finding.contains("multiply)"), "{finding}");
    assert!(!finding.contains("registry/src") && !finding.contains("candle_core::"), "{finding}");
    let without = memcheck_with(project.path(), &fails, &[]).exits(100);
    assert!(!without.stderr.contains("at tests/mem.rs:"), "{}", without.stderr);

    let filters = project.memcheck(&["--device", "cpu", "--no-ci", "passes", "igored_1"]).exits(0);
    filters.prints("warning: the filter `igored_1` matches no test: did you mean `ignored_1`?");
    let mistyped = project.memcheck(&["profle", "leaky"]).exits(2);
    let mistyped = mistyped.prints("unrecognized subcommand 'profle'");
    mistyped.prints("did you mean `cargo memcheck profile`?").prints("cargo memcheck run profle");
}
