//! The format of the file in a folder of results.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::run::RunDescription;
use crate::execution::note::Note;
use crate::invocation::devices::Leg;
use crate::system::error::Reported;

/// The name of the file in a folder of results.
pub(super) const FILE: &str = "results.jsonl";

/// One line of the file. `T` is the type of a test, which differs between writing and reading.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ResultLine<T> {
    /// The first line: a description of the run.
    Run(Box<RunDescription>),
    /// The tests of a device begin.
    Leg { leg: Leg, tests: usize },
    /// A test has ended or is ignored.
    Test(T),
    /// A finding about the workspace.
    Note(Box<Note>),
    /// The last line.
    End(RunEnd),
}

/// A test with its outcome.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TestResult<Task, Outcome> {
    pub(crate) task: Task,
    pub(crate) outcome: Outcome,
    /// The text of its pending snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<String>,
}

/// The facts that are known only at the end of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunEnd {
    /// The number of lines with tests. A smaller number of lines in the file shows that it is incomplete.
    pub(super) tests: usize,
    /// These have the same meaning as the counts in the summary.
    pub(super) elsewhere: usize,
    pub(super) not_run: usize,
    pub(super) interrupted: bool,
    /// The exit code, not counting reports that could not be written.
    pub(super) exit_code: u8,
    /// The failure that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<Reported>,
    /// The devices whose tests were not started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unstarted: Vec<String>,
    /// The wall time of the tests in seconds.
    pub(super) seconds: f64,
}

/// Returns the path of the file in a folder of results.
pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}
