//! Reads a folder of results, also of a run that was killed, or fails with an error that names the
//! invalid line.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use memcheck_core::judgement::verdict::Status;
use memcheck_core::wire::exit;
use serde::Deserialize;

use super::ResultsError;
use super::line::{FILE, ResultLine, RunEnd, TestResult, file};
use super::run::{RunDescription, VERSION};
use crate::build::leg::Leg;
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::execution::proof::CheckedProof;

pub(crate) type Test = TestResult<Task, TestOutcome>;

#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) folder: PathBuf,
    pub(crate) run: RunDescription,
    pub(crate) legs: Vec<(Leg, usize)>,
    /// By the name of the leg.
    pub(crate) proofs: BTreeMap<String, CheckedProof>,
    /// In the order in which they ended.
    pub(crate) tests: Vec<Test>,
    pub(crate) notes: Vec<Note>,
    /// Made up if the file has no last line.
    pub(crate) end: RunEnd,
    /// The reason why the file does not have all results of its run.
    pub(crate) incomplete: Option<String>,
}

pub(crate) fn read(folder: &Path) -> Result<Results, ResultsError> {
    if !folder.is_dir() {
        return Err(ResultsError::NoFolder(folder.to_owned()));
    }
    let path = file(folder);
    let (text, is_written) = match contents(&path) {
        Ok(contents) => contents,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ResultsError::None(folder.to_owned()));
        }
        Err(error) => return Err(ResultsError::Io(path, error)),
    };
    parse(folder, &String::from_utf8_lossy(&text), is_written)
}

/// The bytes, and true if a living run holds the lock of the file.
fn contents(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let mut file = File::open(path)?;
    let is_written = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok((text, is_written))
}

pub(crate) fn parse(folder: &Path, text: &str, is_written: bool) -> Result<Results, ResultsError> {
    let torn = |why: String| ResultsError::Damaged(file(folder), why);
    // A line without an end was being written.
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let (text, cut) = text.split_at(whole);
    let mut lines = (1..).zip(text.lines());
    let first = lines.next().map(|(_, line)| line).unwrap_or_default();
    let run = first_line(folder, first)?;
    let mut results = Results {
        folder: folder.to_owned(),
        run,
        legs: Vec::new(),
        proofs: BTreeMap::new(),
        tests: Vec::new(),
        notes: Vec::new(),
        end: RunEnd::default(),
        incomplete: None,
    };
    let mut unjudged: Vec<Test> = Vec::new();
    let mut ended = false;
    for (number, line) in lines {
        let line: ResultLine<Test> = serde_json::from_str(line)
            .map_err(|error| torn(format!("line {number} of {FILE}: {error}")))?;
        match line {
            _ if ended => return Err(torn(format!("line {number} follows the last line"))),
            ResultLine::Run(_) => {
                return Err(torn(format!("line {number} belongs to another run")));
            }
            ResultLine::Leg { leg, tests, proof } => {
                results.proofs.extend(proof.map(|proof| (leg.name(), *proof)));
                results.legs.push((leg, tests));
            }
            ResultLine::Test(test) => {
                unjudged.retain(|other| other.id() != test.id());
                results.tests.push(test);
            }
            ResultLine::Unjudged(test) => unjudged.push(test),
            ResultLine::Note(note) => results.notes.push(*note),
            ResultLine::End(end) => (results.end, ended) = (end, true),
        }
    }
    let (there, counted) = (results.tests.len(), results.end.tests);
    let lost = results.end.lost;
    if ended && (there > counted || there + lost < counted || !cut.is_empty()) {
        return Err(torn(format!("it has {there} tests, but its last line counts {counted}")));
    }
    results.tests.extend(unjudged);
    results.incomplete = match (ended, lost) {
        (true, 0) => None,
        (true, _) => Some(format!("{} could not be written", counted_lines(lost))),
        (false, _) => {
            let listed: usize = results.legs.iter().map(|(_, tests)| tests).sum();
            let ran = results.tests.iter().filter(|test| test.is_run()).count();
            results.end = results.unended(listed.saturating_sub(ran));
            let state = if is_written {
                "the run has not ended yet"
            } else {
                "the run was killed, or the file is cut off"
            };
            Some(format!("{state}: {ran} of {listed} listed tests have ended"))
        }
    };
    Ok(results)
}

fn counted_lines(lines: usize) -> String {
    memcheck_core::size::counted(lines as u64, "line", "lines")
}

impl Test {
    fn id(&self) -> (String, &str, &str, &str) {
        let task = &self.task;
        (task.leg.name(), &task.package, &task.binary.id, task.name())
    }

    fn is_run(&self) -> bool {
        self.outcome.verdict.status != Status::Ignored
    }
}

impl Results {
    /// The last line that the run would have written if it had ended here.
    fn unended(&self, not_run: usize) -> RunEnd {
        let listed: Vec<String> = self.legs.iter().map(|(leg, _)| leg.name()).collect();
        let unstarted = self.run.devices.iter().filter(|device| !listed.contains(device)).cloned();
        let seconds = |test: &Test| test.outcome.duration.as_secs_f64();
        RunEnd {
            tests: self.tests.len(),
            not_run,
            exit_code: exit::NOT_MEASURED,
            unstarted: unstarted.collect(),
            seconds: self.tests.iter().map(seconds).sum(),
            ..RunEnd::default()
        }
    }
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
