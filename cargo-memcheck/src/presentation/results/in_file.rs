//! Tests that stay in their file until they are presented, so that a report of many tests needs the
//! memory of one.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use memcheck_core::judgement::location::Roots;

use super::line::{FILE, ResultLine, file};
use super::pending_snapshots::Relocation;
use super::read::{open, parse_lines};
use super::replay::Replayed;
use super::{Results, ResultsError, Test};

/// A test that was valid when the file was read. A later run replaces the file by another one, and
/// the run that writes it only adds lines, so that the test stays at its place.
#[derive(Debug)]
pub(crate) struct TestInFile {
    source: Rc<Source>,
    leg: String,
    place: Range<u64>,
}

#[derive(Debug)]
struct Source {
    file: File,
    folder: PathBuf,
    relocation: Relocation,
}

/// Checks every line, so that a damaged file is refused before anything is printed. The paths are those below `roots`.
pub(crate) fn read_in_file(
    folder: &Path,
    roots: Roots<'_>,
) -> Result<Results<TestInFile>, ResultsError> {
    let (file, is_written) = open(folder)?;
    let place = |test: Test, place| (test.task.leg.name(), place);
    let mut results = parse_lines(folder, BufReader::new(&file), is_written, place)?;
    let relocation = results.relocate_run(roots);
    let source = Rc::new(Source { file, folder: folder.to_owned(), relocation });
    let Results { folder, run, legs, proofs, tests, notes, end, incomplete, killed } = results;
    let tests = tests.into_iter();
    let tests = tests.map(|(leg, place)| TestInFile { source: Rc::clone(&source), leg, place });
    let tests = tests.collect();
    Ok(Results { folder, run, legs, proofs, tests, notes, end, incomplete, killed })
}

impl Replayed for TestInFile {
    fn leg(&self) -> String {
        self.leg.clone()
    }

    fn read(self) -> Result<Test, ResultsError> {
        let Source { file: opened, folder, relocation } = &*self.source;
        let mut line = vec![0; (self.place.end - self.place.start) as usize];
        // From the open file, because a new run can have replaced the one under its name.
        let read = opened.read_exact_at(&mut line, self.place.start);
        read.map_err(|error| ResultsError::Io(file(folder), error))?;
        match ResultLine::parse(&String::from_utf8_lossy(&line)) {
            Ok(ResultLine::Test(mut test) | ResultLine::Unjudged(mut test)) => {
                relocation.apply(&mut test);
                Ok(test)
            }
            _ => {
                let why = format!("{FILE} has changed while it was read");
                Err(ResultsError::Damaged(file(folder), why))
            }
        }
    }
}
