//! The format of the file in a folder of results.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::run::RunDescription;
use crate::build::leg::Leg;
use crate::execution::note::Note;
use crate::execution::proof::CheckedProof;
use crate::system::error::Reported;

pub(super) const FILE: &str = "results.jsonl";

/// `T` is the type of a test, which differs between writing and reading.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ResultLine<T> {
    Run(Box<RunDescription>),
    Leg {
        leg: Leg,
        tests: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<Box<CheckedProof>>,
    },
    Test(T),
    /// A test whose limits relate it to others. A later line `Test` replaces it.
    Unjudged(T),
    Note(Box<Note>),
    End(RunEnd),
}

impl<T: DeserializeOwned> ResultLine<T> {
    /// Parses bytes instead of text, because memcheck-core parses records of bytes too: the parser of
    /// a record is compiled once.
    pub(super) fn parse(line: &str) -> serde_json::Result<Self> {
        serde_json::from_slice(line.as_bytes())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TestResult<Task, Outcome> {
    pub(crate) task: Task,
    pub(crate) outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunEnd {
    /// A hash of the selected tests of all parts, with their limits and the other settings of their
    /// verdicts. It is known once all devices have listed their tests.
    pub(super) selected: String,
    /// A smaller number of lines in the file shows that it is incomplete.
    pub(super) tests: usize,
    /// Lines that could not be written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) lost: usize,
    pub(super) elsewhere: usize,
    pub(super) not_run: usize,
    pub(super) interrupted: bool,
    /// Without reports that could not be written.
    pub(super) exit_code: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<Reported>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unstarted: Vec<String>,
    /// The names of tests that had not started when the run was killed.
    #[serde(skip)]
    pub(super) not_started: Vec<String>,
    /// Wall time of the tests.
    pub(super) seconds: f64,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}
