//! The stored records: for each artifact that is proven to be made from its sources, the contents
//! that these had.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use memcheck_core::input;
use serde::{Deserialize, Serialize};

use super::contents::ReadFile;
use super::{Cause, OutputState, Unit};
use crate::system::files;
use crate::system::printing::eprint_line;

/// Another version of the file is ignored, which costs a build at most.
const VERSION: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_UP: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::build) struct Record {
    /// The folder of the checkout.
    pub(super) base: PathBuf,
    pub(super) outputs: BTreeMap<PathBuf, Option<OutputState>>,
    pub(super) inputs: BTreeMap<PathBuf, ReadFile>,
    /// The programs that could have compiled it. Of each record, because a build with another one
    /// makes only those artifacts again that it needs.
    pub(super) compilers: BTreeMap<PathBuf, ReadFile>,
}

impl Record {
    /// The first compiler or input with other contents.
    pub(super) fn difference(&self, now: &Self, unit: &Unit) -> Option<Cause> {
        let compiler = differing(&self.compilers, &now.compilers).next().cloned();
        let input = || differing(&self.inputs, &now.inputs).find(|path| unit.is_unseen(path));
        compiler.map(Cause::OtherCompiler).or_else(|| input().cloned().map(Cause::Changed))
    }
}

fn differing<'a>(
    then: &'a BTreeMap<PathBuf, ReadFile>,
    now: &'a BTreeMap<PathBuf, ReadFile>,
) -> impl Iterator<Item = &'a PathBuf> {
    let content = |path: &PathBuf| then.get(path).map(|read| &read.content);
    let changed = now.iter().filter(move |(path, read)| content(path) != Some(&read.content));
    let gone = then.iter().filter(|(path, _)| !now.contains_key(*path));
    changed.chain(gone).map(|(path, _)| path)
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    version: u32,
    /// By the path of the last output, which has a hash in its name.
    records: BTreeMap<PathBuf, Record>,
}

/// The records of a build directory. They are locked while cargo runs, because another command
/// would otherwise see artifacts that have no record yet.
#[derive(Debug)]
pub(in crate::build) struct Records {
    path: PathBuf,
    stored: Stored,
    _lock: Option<File>,
}

impl Records {
    /// Prints a line if it has to wait, also with `--quiet`: it can be minutes.
    pub(in crate::build) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let lock = lock(&folder.join("sources.lock"))?;
        let path = folder.join("sources.json");
        let stored: Option<Stored> =
            input::read(&path, input::OWN).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let stored = stored.filter(|stored| stored.version == VERSION);
        Ok(Self { path, stored: stored.unwrap_or_default(), _lock: lock })
    }

    pub(super) fn files(&self) -> HashMap<PathBuf, ReadFile> {
        let records = self.stored.records.values();
        let read = records.flat_map(|record| record.inputs.iter().chain(&record.compilers));
        read.map(|(path, read)| (path.clone(), read.clone())).collect()
    }

    pub(super) fn of(&self, unit: &Unit) -> Option<&Record> {
        self.stored.records.get(unit.key())
    }

    pub(super) fn put(&mut self, unit: &Unit, record: Record) {
        self.stored.records.insert(unit.key().to_owned(), record);
    }

    pub(super) fn remove(&mut self, unit: &Unit) {
        self.stored.records.remove(unit.key());
    }

    /// Drops the records of artifacts that no longer exist.
    pub(in crate::build) fn write(mut self) -> io::Result<()> {
        self.stored.version = VERSION;
        self.stored.records.retain(|output, _| output.exists());
        let text = serde_json::to_vec(&self.stored).map_err(io::Error::from)?;
        files::replace_if_different(&self.path, &text).map(drop)
    }
}

/// `None` on a file system without locks.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    let started = Instant::now();
    let mut is_announced = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) => thread::sleep(LOOK_UP),
        }
        if started.elapsed() > PATIENCE && !std::mem::replace(&mut is_announced, true) {
            // As cargo prints it.
            eprint_line!(
                "    Blocking waiting for another `cargo memcheck` in the build directory"
            );
        }
    }
}
