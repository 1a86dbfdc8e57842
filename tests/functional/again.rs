//! The flags that follow a run: `--failed`, `--review` and `report --open`.

use std::os::unix::fs::PermissionsExt;

use crate::fixture::Programs;

#[test]
fn a_test_that_failed_runs_again_until_it_passes() {
    let programs = Programs::of("report_page");
    programs.run("cpu", &[]).exits(100).prints("2 memory tests");
    let again = programs.run("cpu", &["--failed"]).exits(100);
    again.prints("running 1 memory test on cpu").prints("report_page::leaky");
    // A run that leaves it out has not repaired it.
    programs.run("cpu", &["--exact", "report_page::clean"]).exits(0);
    let again = programs.run("cpu", &["--failed"]).exits(100);
    again.prints("running 1 memory test on cpu").prints("report_page::leaky");
    programs.run("cpu", &["--failed", "--max-growth", "1 GiB"]).exits(0);
    let all = programs.run("cpu", &["--failed"]).exits(100);
    all.prints("no test failed last: the selected tests run").prints("2 memory tests");
}

/// The output of a test is not a terminal.
#[test]
fn a_review_without_a_terminal_states_the_reason_and_keeps_the_snapshots() {
    let programs = Programs::of("baselines").with_baselines();
    let (baseline, pending) = (programs.baseline("clean@cpu"), programs.pending("clean@cpu"));
    let run = ["run", "--device", "cpu", "--no-ci", "baselines::clean", "--review"];
    // A new figure is not a failure, so that the run succeeds.
    let run = programs.memcheck(&run).exits(0);
    let run = run.prints("[1/1] programs::baselines::clean (cpu)");
    let accept = "cargo memcheck accept programs__baselines__clean@cpu.snap";
    let run = run.prints(accept);
    run.prints("note: 1 snapshot stays pending, because a review needs a terminal to ask");
    assert!(programs.has(&pending) && !programs.has(&baseline));
    let kept = programs.read(&pending);

    // The stream of JSON ends with the summary of the run.
    let json = programs.run("cpu", &["baselines::clean", "--review"]).exits(0);
    assert_eq!(json.summary()["new"], 1);
    json.prints("because a review needs a terminal to ask");
    assert_eq!(programs.read(&pending), kept);
    let review = programs.memcheck(&["review", "--quiet"]).exits(5);
    assert!(!review.stderr.contains("needs a terminal"), "{}", review.stderr);

    programs.memcheck(&["accept"]).exits(0);
    assert!(programs.has(&baseline) && !programs.has(&pending));
    let nothing = programs.run("cpu", &["baselines::clean", "--review"]).exits(0);
    assert!(!nothing.stderr.contains("needs a terminal"), "{}", nothing.stderr);
}

#[test]
fn the_report_of_a_run_is_opened_in_the_browser_that_a_variable_names() {
    let programs = Programs::of("report_page");
    programs.run("cpu", &[]).exits(100);
    let browser = programs.path().join("a browser");
    let write = |script: &str| {
        std::fs::write(&browser, format!("#!/bin/sh\n{script}\n")).expect("a stand-in");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&browser, executable).expect("it is executable");
    };
    let name = browser.display().to_string();
    let report = |browser: &str, flags: &[&str]| {
        let arguments = [&["report", "results"], flags].concat();
        programs.memcheck_with(&arguments, &[("BROWSER", browser), ("CARGO_TARGET_DIR", "own")])
    };
    write("cat \"$1\" > opened.html");
    report(&name, &["--report", "html=other.html"]).exits(100);
    assert!(!programs.has("opened.html"), "a page was opened without --open");
    // The exit code is that of the run.
    let opened = report(&name, &["--open"]).exits(100);
    assert!(!opened.stderr.contains("no browser"), "{}", opened.stderr);
    let page = programs.read("opened.html");
    assert!(page.starts_with("<!DOCTYPE html>"), "the page is not opened");
    assert!(page == programs.read("own/memcheck/report.html"), "another page is opened");
    report(&name, &["--open", "--report", "html=a page.html"]).exits(100);
    let is_opened = programs.read("opened.html") == programs.read("a page.html");
    assert!(is_opened, "another page is opened");

    write("exit 3");
    let next = "BROWSER can name one";
    report(&name, &["--open"]).exits(100).prints("no browser could open").prints(next);
    report("no-such-browser", &["--open"]).exits(100).prints("no browser could open").prints(next);
}
