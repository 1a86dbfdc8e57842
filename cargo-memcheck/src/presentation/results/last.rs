//! The tests of the last run without their figures, for completions, for `--failed` and for
//! `accept`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use memcheck_core::input;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::limits::Limits;
use memcheck_core::measurement::repeats::{Range, Repeats};
use memcheck_core::tolerance::Tolerance;
use serde::Deserialize;

use super::line::file;
use crate::system::files::{self, Replacement};

/// A list of the tests that had failed when the run of the results began.
const FAILED_BEFORE: &str = "failed-before.json";

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
    report: Option<LastReport>,
}

#[derive(Deserialize)]
struct LastReport {
    snapshot: Option<PathBuf>,
    record: LastRecord,
}

#[derive(Deserialize)]
struct LastRecord {
    repeats: Option<Repeats>,
    limits: Limits,
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
    let names = tests(folder).filter_map(|test| Some(test.task.subject.test?.name));
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Those of the tests that failed or could not be measured, and those that failed before and have
/// not run since, sorted.
pub(crate) fn failed_tests(folder: &Path) -> Vec<String> {
    let (mut failed, mut ran) = (BTreeSet::new(), BTreeSet::new());
    for LastTest { task, outcome } in tests(folder) {
        let (Some(entry), status) = (task.subject.test, outcome.verdict.status) else { continue };
        if status.fails() {
            failed.insert(entry.name.clone());
        }
        if status != Status::Ignored {
            ran.insert(entry.name);
        }
    }
    let before = input::read_text(&folder.join(FAILED_BEFORE), input::RESULTS).unwrap_or_default();
    let before: Vec<String> = serde_json::from_str(&before).unwrap_or_default();
    failed.extend(before.into_iter().filter(|name| !ran.contains(name)));
    failed.into_iter().collect()
}

/// Keeps the names of the failed tests for the time after the results are removed.
pub(super) fn keep_failed(folder: &Path) -> anyhow::Result<()> {
    let failed = failed_tests(folder);
    if failed.is_empty() {
        return Ok(forget_failed(folder)?);
    }
    let mut replacement = Replacement::new(&folder.join(FAILED_BEFORE))?;
    serde_json::to_writer(replacement.file(), &failed)?;
    replacement.commit()?;
    Ok(())
}

/// For a run of all tests, whose own results state what has failed.
pub(crate) fn forget_failed(folder: &Path) -> std::io::Result<()> {
    files::remove(&folder.join(FAILED_BEFORE))
}

/// The tests whose runs measured different figures, by the path of their baselines: the ranges of
/// these figures, and the tolerance of the test.
pub(crate) fn ranges(folder: &Path) -> BTreeMap<PathBuf, (Vec<Range>, Tolerance)> {
    let of_test = |test: LastTest| {
        let LastReport { snapshot, record } = test.outcome.report?;
        let LastRecord { repeats, limits } = record;
        Some((snapshot?, (repeats?.ranges(), limits.tolerance.value)))
    };
    tests(folder).filter_map(of_test).collect()
}

fn tests(folder: &Path) -> impl Iterator<Item = LastTest> {
    let results = input::open(&file(folder), input::RESULTS).ok();
    let lines = results.into_iter().flat_map(|it| BufReader::new(it).lines().map_while(Result::ok));
    lines.filter_map(|line| serde_json::from_str::<LastLine>(&line).ok()?.test)
}
