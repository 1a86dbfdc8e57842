//! Writes the results of a run test by test, so that a run that is killed loses at most the test
//! whose line it was writing. The lock of the file shows other processes that the run has not
//! ended.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use anyhow::Context;
use memcheck_core::input;
use memcheck_core::wire::protocol::Progress;
use serde::Serialize;

use super::line::{ResultLine, RunEnd, TestResult, file};
use super::run::RunDescription;
use super::running::RunningTests;
use crate::build::leg::Leg;
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::execution::proof::CheckedProof;
use crate::presentation::tally::Tally;
use crate::system::files::Replacement;

/// Workers write to it as soon as their tests have ended.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    lines: Mutex<StoredLines<File>>,
    running: Mutex<RunningTests>,
}

impl Store {
    /// Replaces the results of an earlier run. An error is kept: the tests still run.
    pub(crate) fn begin(folder: &Path, run: &RunDescription) -> Self {
        let path = file(folder);
        let first = text_of(&ResultLine::<()>::Run(Box::new(run.clone())));
        let begun = first.and_then(|first| {
            let mut replacement = Replacement::new(&path)?;
            replacement.file().write_all(&first)?;
            Ok((replacement.commit()?, first.len() as u64))
        });
        let lines = match begun {
            Ok((to, length)) => StoredLines { to: Some(to), length, ..StoredLines::default() },
            Err(error) => StoredLines { error: Some(error), ..StoredLines::default() },
        };
        let running = Mutex::new(RunningTests::begin(folder));
        Self { path, lines: Mutex::new(lines), running }
    }

    fn lines(&self) -> MutexGuard<'_, StoredLines<File>> {
        self.lines.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn running(&self) -> MutexGuard<'_, RunningTests> {
        self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The tests of a leg that will run.
    pub(crate) fn selected(&self, tasks: &[Task]) {
        self.running().selected(tasks);
    }

    pub(crate) fn started(&self, task: &Task) {
        self.running().started(task);
    }

    pub(crate) fn progress(&self, task: &Task, progress: &Progress) {
        self.running().progress(task, progress);
    }

    pub(crate) fn leg(&self, leg: &Leg, tests: usize, proof: Option<&CheckedProof>) {
        let proof = proof.cloned().map(Box::new);
        self.lines().add(&ResultLine::<()>::Leg { leg: leg.clone(), tests, proof });
    }

    pub(crate) fn test(&self, task: &Task, outcome: &TestOutcome) {
        // Before the lock, which it takes to keep an error.
        let pending = self.pending(outcome);
        let mut lines = self.lines();
        // Also for a line that is lost, so that the last line shows that a test is missing.
        lines.tests += 1;
        lines.add(&ResultLine::Test(TestResult { task, outcome, pending }));
    }

    /// A test that is judged again when the tests that it is compared with have ended.
    pub(crate) fn unjudged(&self, task: &Task, outcome: &TestOutcome) {
        let pending = self.pending(outcome);
        self.lines().add(&ResultLine::Unjudged(TestResult { task, outcome, pending }));
    }

    pub(crate) fn note(&self, note: &Note) {
        self.lines().add(&ResultLine::<()>::Note(Box::new(note.clone())));
    }

    /// Returns the first error of all lines. `selected` is the hash of all tests that were
    /// selected.
    pub(crate) fn end(
        &self,
        selected: String,
        tally: &Tally,
        exit_code: u8,
    ) -> Option<(PathBuf, anyhow::Error)> {
        let mut lines = self.lines();
        let end = RunEnd {
            selected,
            tests: lines.tests,
            lost: lines.lost,
            elsewhere: tally.elsewhere,
            not_run: tally.not_run,
            interrupted: tally.interrupted,
            exit_code,
            failure: tally.failure.clone(),
            unstarted: tally.unstarted.clone(),
            not_started: Vec::new(),
            seconds: tally.took.as_secs_f64(),
        };
        lines.add(&ResultLine::<()>::End(end));
        self.running().end();
        // Some file systems report a full disk only here.
        if let Some(Err(error)) = lines.to.as_ref().map(File::sync_data) {
            lines.error.get_or_insert(error.into());
        }
        lines.error.take().map(|error| (self.path.clone(), error))
    }

    /// The text must be read now, because another device of this run may replace the file.
    fn pending(&self, outcome: &TestOutcome) -> Option<String> {
        let path = outcome.pending()?;
        let read = input::read_text(path, input::SNAPSHOT);
        match read.with_context(|| path.display().to_string()) {
            Ok(text) => Some(text),
            Err(error) => {
                self.lines().error.get_or_insert(error);
                None
            }
        }
    }
}

/// A file that keeps whole lines only.
trait Sink: Write + Seek {
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

impl Sink for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

#[derive(Debug)]
struct StoredLines<W> {
    /// `None` if there is no file that could be written to.
    to: Option<W>,
    /// The bytes of whole lines.
    length: u64,
    tests: usize,
    /// Lines that could not be written.
    lost: usize,
    error: Option<anyhow::Error>,
}

impl<W> Default for StoredLines<W> {
    fn default() -> Self {
        Self { to: None, length: 0, tests: 0, lost: 0, error: None }
    }
}

impl<W: Sink> StoredLines<W> {
    /// After an error the next line is tried again, because a full disk can have room later.
    fn add(&mut self, line: &ResultLine<impl Serialize>) {
        if let Err(error) = self.try_to_add(line) {
            self.lost += 1;
            self.error.get_or_insert(error);
        }
    }

    fn try_to_add(&mut self, line: &ResultLine<impl Serialize>) -> anyhow::Result<()> {
        let text = text_of(line)?;
        let Some(to) = &mut self.to else { anyhow::bail!("the file could not be created") };
        match to.write_all(&text) {
            Ok(()) => {
                self.length += text.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A part of the line would make the next one unreadable.
                let cut = to.cut(self.length).and_then(|()| to.seek(SeekFrom::Start(self.length)));
                if cut.is_err() {
                    self.to = None;
                }
                Err(error.into())
            }
        }
    }
}

fn text_of(line: &ResultLine<impl Serialize>) -> anyhow::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A disk that is full at some writes, of which it accepts a part.
    #[derive(Debug, Default)]
    struct Disk {
        file: Cursor<Vec<u8>>,
        writes: usize,
        full: Vec<usize>,
    }

    impl Write for Disk {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            if !self.full.contains(&self.writes) {
                return self.file.write(text);
            }
            self.file.write_all(&text[..text.len() / 2])?;
            Err(io::Error::from_raw_os_error(28))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Disk {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    impl Sink for Disk {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.file.get_mut().truncate(length as usize);
            Ok(())
        }
    }

    #[test]
    fn a_refused_write_loses_its_own_line_only() {
        for full in [vec![1], vec![2, 3], vec![5]] {
            let disk = Disk { full: full.clone(), ..Disk::default() };
            let mut lines = StoredLines { to: Some(disk), ..StoredLines::default() };
            for number in 1..=5 {
                lines.add(&ResultLine::Test(number));
            }
            let written = lines.to.unwrap().file.into_inner();
            let text = String::from_utf8(written).unwrap();
            let kept = (1..=5).filter(|number| !full.contains(number));
            let expected: String = kept.map(|number| format!("{{\"test\":{number}}}\n")).collect();
            assert_eq!((text, lines.lost), (expected, full.len()));
            assert!(lines.error.unwrap().to_string().contains("No space left"));
        }
    }
}
