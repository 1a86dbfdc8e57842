//! `--failed` runs the tests that failed last.

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
    all.prints("no test failed last: all tests run").prints("2 memory tests");
}
