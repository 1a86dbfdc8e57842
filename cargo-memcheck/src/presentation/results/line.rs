//! The format of the file in a folder of results.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::run::RunDescription;
use crate::execution::note::Note;
use crate::invocation::devices::Leg;
use crate::system::error::Reported;

pub(super) const FILE: &str = "results.jsonl";

/// `T` is the type of a test, which differs between writing and reading.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ResultLine<T> {
    Run(Box<RunDescription>),
    Leg { leg: Leg, tests: usize },
    Test(T),
    Note(Box<Note>),
    End(RunEnd),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TestResult<Task, Outcome> {
    pub(crate) task: Task,
    pub(crate) outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunEnd {
    /// A smaller number of lines in the file shows that it is incomplete.
    pub(super) tests: usize,
    pub(super) elsewhere: usize,
    pub(super) not_run: usize,
    pub(super) interrupted: bool,
    /// Without reports that could not be written.
    pub(super) exit_code: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<Reported>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unstarted: Vec<String>,
    /// Wall time of the tests.
    pub(super) seconds: f64,
}

pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}
