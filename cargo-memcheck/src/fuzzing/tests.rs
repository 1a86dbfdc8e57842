//! Replays the corpus: real files, and inputs that have once broken a target.

use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder:?} is empty");
    for path in paths {
        println!("{}", path.display());
        run(&std::fs::read(&path).unwrap());
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
