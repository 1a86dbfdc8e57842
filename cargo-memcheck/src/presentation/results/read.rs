//! Reads a folder of results completely, or fails with an error that names the invalid line.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::ResultsError;
use super::line::{FILE, ResultLine, RunEnd, TestResult, file};
use super::run::{RunDescription, VERSION};
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::invocation::devices::Leg;

pub(crate) type Test = TestResult<Task, TestOutcome>;

#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) folder: PathBuf,
    pub(crate) run: RunDescription,
    pub(crate) legs: Vec<(Leg, usize)>,
    /// In the order in which they ended.
    pub(crate) tests: Vec<Test>,
    pub(crate) notes: Vec<Note>,
    pub(crate) end: RunEnd,
}

pub(crate) fn read(folder: &Path) -> Result<Results, ResultsError> {
    if !folder.is_dir() {
        return Err(ResultsError::NoFolder(folder.to_owned()));
    }
    let path = file(folder);
    let text = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ResultsError::None(folder.to_owned()));
        }
        Err(error) => return Err(ResultsError::Io(path, error)),
    };
    parse(folder, &String::from_utf8_lossy(&text))
}

fn parse(folder: &Path, text: &str) -> Result<Results, ResultsError> {
    let torn = |why: String| ResultsError::Damaged(file(folder), why);
    let mut lines = (1..).zip(text.lines());
    let first = lines.next().map(|(_, line)| line).unwrap_or_default();
    let run = first_line(folder, first)?;
    let mut results = Results {
        folder: folder.to_owned(),
        run,
        legs: Vec::new(),
        tests: Vec::new(),
        notes: Vec::new(),
        end: RunEnd {
            tests: 0,
            elsewhere: 0,
            not_run: 0,
            interrupted: false,
            exit_code: 0,
            failure: None,
            unstarted: Vec::new(),
            seconds: 0.0,
        },
    };
    let mut ended = false;
    for (number, line) in lines {
        let line: ResultLine<Test> = serde_json::from_str(line)
            .map_err(|error| torn(format!("line {number} of {FILE}: {error}")))?;
        match line {
            _ if ended => return Err(torn(format!("line {number} follows the last line"))),
            ResultLine::Run(_) => {
                return Err(torn(format!("line {number} belongs to another run")));
            }
            ResultLine::Leg { leg, tests } => results.legs.push((leg, tests)),
            ResultLine::Test(test) => results.tests.push(test),
            ResultLine::Note(note) => results.notes.push(*note),
            ResultLine::End(end) => (results.end, ended) = (end, true),
        }
    }
    if !ended {
        return Err(torn("its last line is missing".to_owned()));
    }
    let (there, counted) = (results.tests.len(), results.end.tests);
    if there != counted {
        return Err(torn(format!("it has {there} tests, but its last line counts {counted}")));
    }
    Ok(results)
}

/// The versions come first: another version can have other fields, and the format is internal, so
/// it is refused.
fn first_line(folder: &Path, line: &str) -> Result<RunDescription, ResultsError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum ResultsVersion {
        Run { version: u32, protocol: u32, record: u32, memcheck: String },
    }
    let torn = |error: serde_json::Error| {
        ResultsError::Damaged(file(folder), format!("line 1 of {FILE}: {error}"))
    };
    let ResultsVersion::Run { version, protocol, record, memcheck } =
        serde_json::from_str(line).map_err(torn)?;
    let ours = (
        VERSION,
        memcheck_core::wire::protocol::VERSION,
        memcheck_core::measurement::record::VERSION,
    );
    if (version, protocol, record) != ours || memcheck != env!("CARGO_PKG_VERSION") {
        let what = format!("cargo-memcheck {memcheck}, format {version}.{protocol}.{record}");
        return Err(ResultsError::Version(file(folder), what));
    }
    match serde_json::from_str(line).map_err(torn)? {
        ResultLine::<Test>::Run(run) => Ok(*run),
        _ => Err(ResultsError::Damaged(
            file(folder),
            "its first line does not describe a run".to_owned(),
        )),
    }
}
