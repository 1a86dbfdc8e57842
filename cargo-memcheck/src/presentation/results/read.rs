//! Reads a folder of results, also of a run that was killed, or fails with an error that names the
//! invalid line.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use memcheck_core::input;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::record;
use memcheck_core::size::{self, Size};
use memcheck_core::wire::{exit, protocol};
use serde::Deserialize;

use super::ResultsError;
use super::line::{FILE, ResultLine, RunEnd, TestResult, file};
use super::run::{RunDescription, VERSION};
use super::running::{self, TestKey, UnfinishedTests};
use crate::build::leg::Leg;
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::execution::proof::CheckedProof;

pub(crate) type Test = TestResult<Task, TestOutcome>;

/// `T` is a test, or the place of a test in the file.
#[derive(Debug)]
pub(crate) struct Results<T = Test> {
    pub(crate) folder: PathBuf,
    pub(crate) run: RunDescription,
    pub(crate) legs: Vec<(Leg, usize)>,
    /// By the name of the leg.
    pub(crate) proofs: BTreeMap<String, CheckedProof>,
    /// In the order in which they ended.
    pub(crate) tests: Vec<T>,
    pub(crate) notes: Vec<Note>,
    /// Made up if the file has no last line.
    pub(crate) end: RunEnd,
    /// The reason why the file does not have all results of its run.
    pub(crate) incomplete: Option<String>,
    /// Tests that were running when the run was killed.
    pub(crate) killed: Vec<(Task, TestOutcome)>,
}

pub(crate) fn read(folder: &Path) -> Result<Results, ResultsError> {
    let (file, is_written) = open(folder)?;
    parse_lines(folder, BufReader::new(&file), is_written, |test, _| test)
}

#[cfg(any(test, fuzzing))]
pub(crate) fn parse(folder: &Path, text: &str, is_written: bool) -> Result<Results, ResultsError> {
    parse_lines(folder, text.as_bytes(), is_written, |test, _| test)
}

/// More tests that were running are counted.
const MOST_NAMES: usize = 3;

/// The file, and true if a living run holds its lock.
pub(super) fn open(folder: &Path) -> Result<(File, bool), ResultsError> {
    if !folder.is_dir() {
        return Err(ResultsError::NoFolder(folder.to_owned()));
    }
    let path = file(folder);
    match input::open(&path, input::RESULTS) {
        Ok(file) => {
            // Shared, so that two readers do not take each other for the run.
            let is_written = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
            Ok((file, is_written))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(ResultsError::None(folder.to_owned()))
        }
        Err(error) => Err(unreadable(path, error)),
    }
}

fn unreadable(path: PathBuf, error: io::Error) -> ResultsError {
    match input::is_refusal(&error) {
        true => ResultsError::Damaged(path, error.to_string()),
        false => ResultsError::Io(path, error),
    }
}

/// The tests of a file, with their sums for a file that has no last line.
struct Tests<T> {
    kept: Vec<T>,
    ended: BTreeSet<TestKey>,
    ran: usize,
    seconds: f64,
}

impl<T> Tests<T> {
    fn add(&mut self, test: Test, keep: impl FnOnce(Test) -> T) {
        self.ran += usize::from(test.outcome.verdict.status != Status::Ignored);
        self.seconds += test.outcome.duration.as_secs_f64();
        self.ended.insert(TestKey::of(&test.task));
        self.kept.push(keep(test));
    }
}

/// Reads one line after the other. `keep` gets each test, with the bytes of the file that it is in.
pub(super) fn parse_lines<T>(
    folder: &Path,
    reader: impl BufRead,
    is_written: bool,
    mut keep: impl FnMut(Test, Range<u64>) -> T,
) -> Result<Results<T>, ResultsError> {
    let torn = |why: String| ResultsError::Damaged(file(folder), why);
    let refused = |error| unreadable(file(folder), error);
    let mut lines = LineReader::new(reader, input::RESULTS_LINE);
    let first = lines.next().map_err(refused)?.map(|_| lines.text());
    let run = first_line(folder, &first.unwrap_or_default())?;
    let mut results = Results {
        folder: folder.to_owned(),
        run,
        legs: Vec::new(),
        proofs: BTreeMap::new(),
        tests: Vec::new(),
        notes: Vec::new(),
        end: RunEnd::default(),
        incomplete: None,
        killed: Vec::new(),
    };
    let mut tests = Tests { kept: Vec::new(), ended: BTreeSet::new(), ran: 0, seconds: 0.0 };
    let mut unjudged: Vec<(Test, Range<u64>)> = Vec::new();
    let mut ended = false;
    while let Some(range) = lines.next().map_err(refused)? {
        let number = lines.number;
        let line: ResultLine<Test> = ResultLine::parse(&lines.text())
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
                let id = TestKey::of(&test.task);
                unjudged.retain(|(other, _)| TestKey::of(&other.task) != id);
                tests.add(test, |test| keep(test, range));
            }
            ResultLine::Unjudged(test) => unjudged.push((test, range)),
            ResultLine::Note(note) => results.notes.push(*note),
            ResultLine::End(end) => (results.end, ended) = (end, true),
        }
    }
    let (there, counted) = (tests.kept.len(), results.end.tests);
    let lost = results.end.lost;
    // Each line that was lost can have been that of a test.
    if ended && (there > counted || there + lost < counted || lines.is_cut()) {
        return Err(torn(format!("it has {there} tests, but its last line counts {counted}")));
    }
    for (test, range) in unjudged {
        tests.add(test, |test| keep(test, range));
    }
    results.incomplete = match (ended, lost) {
        (true, 0) => None,
        (true, _) => Some(format!("{} could not be written", counted_lines(lost))),
        (false, _) => {
            let add = |sum: usize, (_, tests): &(Leg, usize)| sum.checked_add(*tests);
            let listed = results.legs.iter().try_fold(0, add);
            let listed = listed.ok_or_else(|| torn("it lists too many tests".to_owned()))?;
            let unfinished = running::read(folder, &tests.ended);
            Some(results.cut_off(&tests, listed, unfinished, is_written))
        }
    };
    results.tests = tests.kept;
    Ok(results)
}

/// The lines of a file, of which one is in memory.
struct LineReader<R> {
    reader: R,
    /// The most bytes of a line.
    most: u64,
    /// The line, without its end.
    bytes: Vec<u8>,
    /// Its number, from 1.
    number: usize,
    end: u64,
}

impl<R: BufRead> LineReader<R> {
    fn new(reader: R, most: u64) -> Self {
        Self { reader, most, bytes: Vec::new(), number: 0, end: 0 }
    }

    /// The bytes of the next line in the file. A line without an end was being written, and is
    /// left out.
    fn next(&mut self) -> io::Result<Option<Range<u64>>> {
        self.bytes.clear();
        self.number += 1;
        // One byte more for the end of the line.
        let mut reader = self.reader.by_ref().take(self.most.saturating_add(1));
        reader.read_until(b'\n', &mut self.bytes)?;
        if self.bytes.pop_if(|last| *last == b'\n').is_none() {
            if self.bytes.len() as u64 > self.most {
                let why =
                    format!("line {} of {FILE} has more than {}", self.number, Size(self.most));
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
            return Ok(None);
        }
        let start = self.end;
        self.end += self.bytes.len() as u64 + 1;
        Ok(Some(start..self.end))
    }

    fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    /// True after the last line if a part of another one follows.
    fn is_cut(&self) -> bool {
        !self.bytes.is_empty()
    }
}

fn counted_lines(lines: usize) -> String {
    memcheck_core::size::counted(lines as u64, "line", "lines")
}

impl<T> Results<T> {
    /// Completes the results of a run that has not ended. Returns the reason why they are incomplete.
    fn cut_off(
        &mut self,
        tests: &Tests<T>,
        listed: usize,
        unfinished: Option<UnfinishedTests>,
        is_written: bool,
    ) -> String {
        let state = match (is_written, &unfinished) {
            (true, _) => "the run has not ended yet",
            (false, Some(_)) => "the run was killed",
            (false, None) => "the run was killed, or the file is cut off",
        };
        let UnfinishedTests { running, not_started } = unfinished.unwrap_or_default();
        let names: Vec<&str> = running.iter().map(|(task, _)| task.name()).collect();
        let named = named(&names, is_written);
        let (killed, ran) = (if is_written { 0 } else { running.len() }, tests.ran);
        self.end = self.unended(tests, listed.saturating_sub(ran).saturating_sub(killed));
        self.end.not_started = not_started;
        if !is_written {
            let killed = running.into_iter().map(|(task, progress)| {
                let outcome = TestOutcome::killed(progress.as_ref());
                (task, outcome)
            });
            self.killed = killed.collect();
        }
        format!(
            "{state}: {ran} of {} have results{named}",
            size::counted(listed as u64, "test", "tests")
        )
    }

    /// The last line that the run would have written if it had ended here.
    fn unended(&self, tests: &Tests<T>, not_run: usize) -> RunEnd {
        let listed: Vec<String> = self.legs.iter().map(|(leg, _)| leg.name()).collect();
        let unstarted = self.run.devices.iter().filter(|device| !listed.contains(device)).cloned();
        RunEnd {
            tests: tests.kept.len(),
            not_run,
            exit_code: exit::NOT_MEASURED,
            unstarted: unstarted.collect(),
            seconds: tests.seconds,
            ..RunEnd::default()
        }
    }
}

/// `; `a`, `b` and 3 more were running`.
fn named(names: &[&str], is_written: bool) -> String {
    let (shown, more) = names.split_at(names.len().min(MOST_NAMES));
    let mut text: Vec<String> = shown.iter().map(|name| format!("`{name}`")).collect();
    text.extend((!more.is_empty()).then(|| format!("{} more", more.len())));
    let verb = match (is_written, names.len()) {
        (true, 1) => "is running",
        (true, _) => "are running",
        (false, 1) => "was running",
        (false, _) => "were running",
    };
    match text.split_last() {
        None => String::new(),
        Some((only, [])) => format!("; {only} {verb}"),
        Some((last, others)) => format!("; {} and {last} {verb}", others.join(", ")),
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
    let described = |memcheck: &str, format: [u32; 3]| {
        let [version, protocol, record] = format;
        format!("cargo-memcheck {memcheck} (format {version}.{protocol}.{record})")
    };
    let theirs = described(&memcheck, [version, protocol, record]);
    let present = [VERSION, protocol::VERSION, record::VERSION];
    let ours = described(env!("CARGO_PKG_VERSION"), present);
    if theirs != ours {
        return Err(ResultsError::Version(file(folder), format!("{theirs}, this is {ours}")));
    }
    match ResultLine::parse(line).map_err(torn)? {
        ResultLine::<Test>::Run(run) => Ok(*run),
        _ => Err(ResultsError::Damaged(
            file(folder),
            "its first line does not describe a run".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_greatest_length() {
        let mut lines = LineReader::new(&b"four\n12345\n"[..], 4);
        assert_eq!((lines.next().unwrap(), lines.text()), (Some(0..5), "four".into()));
        let error = unreadable("results.jsonl".into(), lines.next().unwrap_err());
        let expected = "line 2 of results.jsonl has more than 4 B";
        assert!(matches!(error, ResultsError::Damaged(_, why) if why == expected));
    }
}
