//! `cargo memcheck bench`: criterion measures bytes on the simulated GPU.

use crate::fixture::{Run, memcheck, workspace};

const QUICK: [&str; 5] = ["--", "--warm-up-time", "0.1", "--measurement-time", "0.1"];

fn bench(arguments: &[&str]) -> Run {
    let all =
        ["bench", "-p", "memcheck-tests", "-F", "benches", "--bench", "bytes", "--device", "sim"];
    memcheck(&workspace(), &[&all, arguments].concat())
}

#[test]
#[ignore = "slow: just all"]
fn criterion_measures_bytes_and_a_second_run_finds_no_change() {
    // 64 x 256 floats of 4 B, for the product and for its relu.
    assert_eq!(2 * 64 * 256 * 4, 128 << 10);
    let measured = "[128.00 KiB 128.00 KiB 128.00 KiB]";
    let first = bench(&QUICK).exits(0);
    assert!(first.stderr.contains("running memcheck-tests::bench/bytes on sim:h200"));
    for function in ["layer/allocated", "layer/peak"] {
        let line =
            first.stdout.lines().find(|line| line.starts_with(function) && line.contains("time:"));
        assert!(line.is_some_and(|line| line.ends_with(measured)), "{}", first.stdout);
    }
    let again = bench(&[&["peak"][..], &QUICK].concat()).exits(0);
    assert!(!again.stdout.contains("layer/allocated"), "{}", again.stdout);
    assert!(again.stdout.contains("[+0.0000% +0.0000% +0.0000%]"), "{}", again.stdout);
}

#[test]
fn a_bench_that_requires_features_is_skipped_with_a_note() {
    let project = crate::fixture::Project::bare(
        "[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n[features]\nfast = []\n\
         [[bench]]\nname = \"speed\"\nharness = false\nrequired-features = [\"fast\"]\n",
    );
    project.write("benches/speed.rs", "use memcheck_runtime as _;\nfn main() {}\n");
    let run = project.memcheck(&["bench", "--device", "cpu"]).exits(4);
    run.prints(
        "note: bench speed is skipped, because it needs the features fast; --bench speed selects \
         it",
    );
    project.memcheck(&["bench", "--device", "cpu", "--bench", "speed", "-F", "fast"]).exits(0);
}

#[test]
#[ignore = "slow: just all"]
fn a_failed_or_unknown_bench_is_reported() {
    let failed = bench(&["--", "--no-such-flag"]).exits(100);
    assert!(failed.stderr.contains("failed: memcheck-tests::bench/bytes on sim:h200"));
    let unknown = memcheck(&workspace(), &["bench", "--bench", "nonsense", "--device", "sim"]);
    let unknown = unknown.exits(2);
    assert!(
        unknown.stderr.contains("bytes"),
        "the known benches are not listed: {}",
        unknown.stderr
    );
    let none = memcheck(&workspace(), &["bench", "-p", "memcheck-runtime", "--device", "sim"]);
    assert!(none.exits(4).stderr.contains("no memory tests"));
}
