//! The output for people: ignored tests, repeated failures, written reports, filters and
//! subcommands that are mistyped, and the frames of an error.

use crate::fixture::{Programs, memcheck};

fn lines<'a>(text: &'a str, part: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(part)).collect()
}

#[test]
fn the_end_of_a_run_repeats_its_failures_and_lists_its_reports() {
    let programs = Programs::of("terminal");
    let human = |arguments: &[&str]| {
        programs.memcheck(&[&["run", "--device", "cpu", "--no-ci"], arguments].concat())
    };
    let run = human(&["terminal::", "--report", "junit=out/junit.xml"]).exits(100);
    let package = "-p memcheck-programs --test programs";
    let (_, end) =
        run.stderr.split_once("not ok: 1 passed, 2 failed, 4 ignored").expect("a verdict");
    // Its remedy names the line of the list, so that the test shows if the edit has helped.
    let fixed = format!("cargo memcheck run {package} terminal::leaky --exact --device");
    let again = format!("cargo memcheck run {package} terminal::fails --exact --no-capture");
    for part in [
        "leaky: leak  tests/programs/main.rs:",
        "tensors of each iteration are kept (tensor-kept)",
        &fixed,
        "fails: test-failed  tests/programs/terminal.rs:",
        "the body returned an error in iteration 1 of 12",
        &again,
    ] {
        assert_eq!(lines(end, part).len(), 1, "{part}: {end}");
    }
    assert_eq!(lines(end, " (the test)").len(), 1, "the error has no line: {end}");
    assert_eq!(lines(end, "passes").len(), 0, "{end}");
    assert_eq!(lines(end, "report: out/junit.xml").len(), 1, "{end}");
    assert_eq!(lines(&run.stderr, "IGNORED").len(), 1, "{}", run.stderr);
    run.prints("4 tests (--verbose lists them, --run-ignored all runs them)");
    let verbose = human(&["terminal::", "--verbose"]).exits(100);
    assert_eq!(lines(&verbose.stderr, "IGNORED").len(), 4, "{}", verbose.stderr);
    let passing = human(&["terminal::passes"]).exits(0);
    // With a space, because "waiting for another `cargo memcheck`" is not a next command.
    assert_eq!(lines(&passing.stderr, "cargo memcheck ").len(), 0, "{}", passing.stderr);

    // The command that shows the call sites is one that the command accepts.
    let profile =
        "profile -p memcheck-programs --test programs terminal::leaky --exact --device cpu";
    let words: Vec<&str> = profile.split(' ').collect();
    programs.memcheck(&words).exits(100);

    let backtrace = [("RUST_BACKTRACE", "1")];
    let fails = ["run", "--device", "cpu", "--no-ci", "terminal::fails"];
    let run = programs.memcheck_with(&fails, &backtrace).exits(100);
    let (_, finding) = run.stderr.split_once("test-failed: ").expect("a finding");
    let finding = finding.split("output:").next().unwrap_or_default();
    // Relative to the folder of the package, in which the test has started.
    let at = format!("at terminal.rs:{} (", programs.line("product"));
    assert!(finding.contains(&at) && finding.contains("multiply)"), "{finding}");
    assert!(!finding.contains("registry/src") && !finding.contains("candle_core::"), "{finding}");
    let without = programs.memcheck(&fails).exits(100);
    assert!(!without.stderr.contains("at terminal.rs:"), "{}", without.stderr);

    human(&["terminal::passes", "igored_1"]).exits(0).prints(
        "warning: the filter `igored_1` matches no test: did you mean `terminal::ignored_1`?",
    );
    let mistyped = memcheck(programs.path(), &["profle", "leaky"]).exits(2);
    let mistyped = mistyped.prints("unrecognized subcommand 'profle'");
    mistyped.prints("did you mean `cargo memcheck profile`?").prints("cargo memcheck run profle");
}
