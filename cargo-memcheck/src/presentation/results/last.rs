//! The tests of the last run without their figures, for completions: reading them takes milliseconds.

use std::io::{BufRead, BufReader};
use std::path::Path;

use memcheck_core::input;
use serde::Deserialize;

use super::line::file;

#[derive(Deserialize)]
struct LastLine {
    test: Option<LastTest>,
}

#[derive(Deserialize)]
struct LastTest {
    task: LastTask,
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
    let Ok(results) = input::open(&file(folder), input::RESULTS) else { return Vec::new() };
    let lines = BufReader::new(results).lines().map_while(Result::ok);
    let mut names: Vec<String> = lines
        .filter_map(|line| serde_json::from_str::<LastLine>(&line).ok())
        .filter_map(|line| Some(line.test?.task.subject.test?.name))
        .collect();
    names.sort();
    names.dedup();
    names
}
