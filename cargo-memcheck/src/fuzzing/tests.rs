//! Replays the corpus: real files, and inputs that have once broken a target. A few mutations of
//! each file follow; the fuzzer makes more, and chooses them by the code that they reach.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[path = "../../../fuzz/src/json.rs"]
mod json;

/// A run takes milliseconds.
const LONGEST: Duration = Duration::from_secs(30);

fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder:?} is empty");
    paths
}

fn replay(target: &str, run: fn(&[u8])) {
    for path in corpus(target) {
        println!("{}", path.display());
        run(&std::fs::read(&path).unwrap());
    }
}

/// Writes an input that breaks the target to a file. Returns the number of mutations that are JSON.
fn mutate(target: &str, run: fn(&[u8]), seeds: impl Iterator<Item = u32>) -> u32 {
    let corpus: Vec<Vec<u8>> =
        corpus(target).iter().map(|path| std::fs::read(path).unwrap()).collect();
    let mut runs = 0;
    for seed in seeds {
        let mut random = json::Random::new(seed);
        let input = &corpus[random.below(corpus.len())];
        let Some(input) = json::mutated(input, &mut random) else { continue };
        let start = Instant::now();
        let outcome = std::panic::catch_unwind(|| run(&input));
        let took = start.elapsed();
        if outcome.is_err() || took > LONGEST {
            let path = std::env::temp_dir().join(format!("memcheck-{target}-{seed}"));
            std::fs::write(&path, &input).unwrap();
            panic!("{} takes {took:?}, or panics", path.display());
        }
        runs += 1;
    }
    runs
}

#[test]
fn mutated_json_breaks_no_target() {
    assert!(mutate("results", super::results, 0..40) > 20);
    assert!(mutate("report", super::report, 0..80) > 40);
    assert!(mutate("archive", super::archive, 0..80) > 40);
}

#[test]
#[ignore = "a loop without an end, for machines without a fuzzer: TARGET and FIRST are variables"]
fn mutations_without_an_end() {
    let first = std::env::var("FIRST").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let target = std::env::var("TARGET").unwrap_or_default();
    let run = match target.as_str() {
        "results" => super::results,
        "archive" => super::archive,
        _ => super::report,
    };
    let target = if target.is_empty() { "report" } else { &target };
    mutate(target, run, first..);
}

/// Real files are valid, and others have names that state their defects.
fn assert_valid(path: &Path, is_valid: bool) {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_damaged = name.starts_with("overflow") || name.contains("without");
    assert_eq!(is_valid, !is_damaged, "{}", path.display());
}

#[test]
fn the_corpus_has_the_versions_that_are_read() {
    for path in corpus("results") {
        let text = std::fs::read_to_string(&path).unwrap();
        let run = crate::presentation::results::parse(&path, &text, false);
        assert_valid(&path, run.is_ok());
    }
    for path in corpus("archive") {
        let page = std::fs::read(&path).unwrap();
        assert_valid(&path, crate::discovery::archive::inspect(&page));
    }
}

#[test]
fn the_corpus_of_results_is_presented() {
    replay("results", super::results);
}

#[test]
fn the_corpus_of_reports_is_judged() {
    replay("report", super::report);
}

#[test]
fn the_corpus_of_archives_is_inspected() {
    replay("archive", super::archive);
}

#[test]
fn the_corpus_of_snapshots_is_compared() {
    replay("snapshot", super::snapshot);
}

#[test]
fn the_corpus_of_answers_about_the_machine_is_read() {
    replay("machine", super::machine);
}
