//! The tests of the last run without their figures, for completions and for `--failed`.

use std::io::{BufRead, BufReader};
use std::path::Path;

use memcheck_core::input;
use memcheck_core::judgement::verdict::Status;
use serde::Deserialize;

use super::line::file;

#[derive(Deserialize)]
struct LastLine {
    test: Option<LastTest>,
}

#[derive(Deserialize)]
struct LastTest {
    task: LastTask,
    outcome: LastOutcome,
}

#[derive(Deserialize)]
struct LastOutcome {
    verdict: LastVerdict,
}

#[derive(Deserialize)]
struct LastVerdict {
    status: Status,
}

#[derive(Deserialize)]
struct LastTask {
    subject: LastSubject,
}

#[derive(Deserialize)]
struct LastSubject {
    test: Option<LastEntry>,
}

#[derive(Deserialize)]
struct LastEntry {
    name: String,
}

/// The names of the tests in the results of a folder, sorted. Lines of another version are left out.
pub(crate) fn test_names(folder: &Path) -> Vec<String> {
    names(folder, |_| true)
}

/// Those of the tests that failed or could not be measured.
pub(crate) fn failed_tests(folder: &Path) -> Vec<String> {
    names(folder, |status| matches!(status, Status::Failed | Status::NotMeasured))
}

fn names(folder: &Path, is_wanted: fn(Status) -> bool) -> Vec<String> {
    let Ok(results) = input::open(&file(folder), input::RESULTS) else { return Vec::new() };
    let lines = BufReader::new(results).lines().map_while(Result::ok);
    let mut names: Vec<String> = lines
        .filter_map(|line| serde_json::from_str::<LastLine>(&line).ok()?.test)
        .filter(|test| is_wanted(test.outcome.verdict.status))
        .filter_map(|test| Some(test.task.subject.test?.name))
        .collect();
    names.sort();
    names.dedup();
    names
}
