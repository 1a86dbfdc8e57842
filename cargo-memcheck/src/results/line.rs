//! The file in a folder of results, line by line.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::run::Run;
use crate::devices::Leg;
use crate::error::Reported;
use crate::note::Note;

/// The file in a folder of results.
pub(super) const FILE: &str = "results.jsonl";

/// One line of the file; a test is written and read as different types.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line<T> {
    /// The first.
    Run(Box<Run>),
    /// The tests of a device begin.
    Leg { leg: Leg, tests: usize },
    /// A test has ended, or is ignored.
    Test(T),
    /// A finding about the workspace.
    Note(Box<Note>),
    /// The last.
    End(End),
}

/// A test with all that is known of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept<Task, Outcome> {
    pub(crate) task: Task,
    pub(crate) outcome: Outcome,
    /// The text of its pending snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<String>,
}

/// What is known at the end only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct End {
    /// Lines of tests.
    pub(super) tests: usize,
    /// As the counts of the summary.
    pub(super) elsewhere: usize,
    pub(super) not_run: usize,
    pub(super) interrupted: bool,
    /// The exit code, but for reports that could not be written.
    pub(super) exit_code: u8,
    /// The failure that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<Reported>,
    /// Devices whose tests were not started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unstarted: Vec<String>,
    /// Wall-clock time of the tests.
    pub(super) seconds: f64,
}

/// The file in a folder of results.
pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}
