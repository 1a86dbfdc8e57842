//! `--failed` runs the tests that failed last.

use crate::fixture::Programs;

#[test]
fn the_tests_that_failed_last_run_again_until_none_has_failed() {
    let programs = Programs::of("report_page");
    programs.run("cpu", &[]).exits(100).prints("2 memory tests");
    let again = programs.run("cpu", &["--failed"]).exits(100);
    again.prints("running 1 memory test on cpu").prints("report_page::leaky");
    programs.run("cpu", &["--exact", "report_page::clean"]).exits(0);
    programs.run("cpu", &["--failed"]).exits(0).prints("no test failed in the last run");
}
