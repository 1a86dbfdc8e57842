//! The results of real runs in `cargo-memcheck/recorded`, for unit tests of what a run presents. They are read as
//! `report` reads them. A functional test compares them with new runs (`tests/functional/recorded.rs`).

mod endings;
mod exports;

use std::path::Path;

use memcheck_core::input;
use memcheck_core::judgement::location::Roots;
use serde_json::Value;

use super::exports::html::unpack;
use super::reports;
use crate::discovery::task::{Task, TestOutcome};
use crate::invocation::values::{ExportKind, NoTests, ReportKind};
use crate::presentation::results::{self, MergedRun, Results};

/// All recordings.
pub(crate) const RECORDINGS: [&str; 4] = ["cpu", "sim", "endings", "bert"];

/// The workspace of the recorded tests.
pub(super) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

pub(super) fn results(recording: &str) -> Results {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded").join(recording);
    let mut results = results::read(&folder).unwrap();
    results.relocate(Roots::new(workspace(), None));
    results
}

#[track_caller]
pub(super) fn test(recording: &str, name: &str) -> (Task, TestOutcome) {
    let mut tests = results(recording).tests.into_iter();
    let found = tests.find(|test| test.task.name() == name).expect(name);
    (found.task, found.outcome)
}

pub(super) fn report(kind: ReportKind, recording: &str) -> Vec<u8> {
    let mut report = reports::writer(kind, Some(Roots::new(workspace(), None)));
    let whole = MergedRun::from(results(recording));
    let tally = results::replay(whole, |event| event(report.as_mut()));
    report.finished(&tally, tally.exit_code(NoTests::Fail));
    report.text().unwrap()
}

pub(super) fn text(kind: ReportKind, recording: &str) -> String {
    String::from_utf8(report(kind, recording)).unwrap()
}

pub(super) fn json(kind: ReportKind, recording: &str) -> Value {
    serde_json::from_slice(&report(kind, recording)).unwrap()
}

/// The lines of the stream.
pub(crate) fn stream(recording: &str) -> Vec<Value> {
    let text = text(ReportKind::Json, recording);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The line of a test in the stream.
#[track_caller]
pub(super) fn line(recording: &str, name: &str) -> Value {
    let mut lines = stream(recording).into_iter();
    lines.find(|line| line["type"] == "test-finished" && line["test"] == name).expect(name)
}

/// The data of a test in the page.
#[track_caller]
pub(super) fn data(recording: &str, name: &str) -> Value {
    let tests = unpack(&text(ReportKind::Export(ExportKind::Html), recording)).into_iter();
    tests.into_iter().find(|data| data["test"] == name).expect(name)
}

pub(super) fn sum(rows: &Value, column: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[column].as_u64().unwrap()).sum()
}

/// The line of a source in `tests/programs` that ends with the comment `// line: MARKER`.
pub(super) fn marked(source: &str, marker: &str) -> usize {
    let text = input::read_text(&workspace().join(source), input::SOURCE).unwrap();
    let end = format!("// line: {marker}");
    text.lines().position(|line| line.ends_with(&end)).unwrap() + 1
}
