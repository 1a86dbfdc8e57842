//! Looks up the names of the call stacks that test processes leave as addresses. A record is judged
//! only after it, because places with equal names are joined, and the rules look at functions.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use memcheck_core::judgement::blame;
use memcheck_core::measurement::record::Record;
use memcheck_core::runs::process_end::Ended;
use memcheck_core::wire::protocol::Measurement;

use crate::symbols::Symbols;

/// The most executables whose tables are kept. The tables of a large program take several hundred
/// MiB, and the tests of one executable mostly run together.
const MOST: usize = 4;

/// The tables of the executables that were used last, for all threads of a process.
#[derive(Debug, Default)]
pub struct Names(Mutex<Vec<(PathBuf, Symbols)>>);

impl Names {
    /// A table for one process.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The record of a measurement of `executable`, with the names of its call stacks. The tables
    /// are read from `readable`, which can be another path of the same file.
    pub fn name(
        &self,
        measurement: Measurement,
        executable: &Path,
        readable: impl FnOnce() -> PathBuf,
    ) -> Record {
        let Measurement { mut record, unresolved, .. } = measurement;
        if unresolved.is_none() && !record.has_unnamed_lines() {
            return record;
        }
        self.with_symbols(executable, readable, |symbols| {
            if let Some(unresolved) = unresolved {
                record.attribute(*unresolved, |call| symbols.frames(call));
                blame::note_once(&mut record);
            }
            record.name_lines(|call| symbols.frames(call));
            record
        })
    }

    /// The end of a process of `executable`, with the line at which it crashed or else that of its
    /// test. The tables are read from `readable` only if its stack is known.
    pub fn locate(
        &self,
        ended: Ended,
        executable: &Path,
        readable: impl FnOnce() -> PathBuf,
        test: Option<(&Path, u32)>,
    ) -> Ended {
        if ended.stack.is_none() {
            return ended.located(|_| Vec::new(), test);
        }
        self.with_symbols(executable, readable, |symbols| {
            ended.located(|call| symbols.frames(call), test)
        })
    }

    fn with_symbols<T>(
        &self,
        executable: &Path,
        readable: impl FnOnce() -> PathBuf,
        work: impl FnOnce(&mut Symbols) -> T,
    ) -> T {
        // Held for the whole look-up, so that two threads never read the same tables at once.
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The last one is the one that was used last.
        let known = tables.iter().position(|(path, _)| path == executable);
        let mut table = match known {
            Some(known) => tables.remove(known),
            None => (executable.to_owned(), Symbols::open(&readable())),
        };
        if tables.len() >= MOST {
            tables.remove(0);
        }
        let result = work(&mut table.1);
        tables.push(table);
        result
    }
}
