//! The subject of a task: a test, or a program that `profile` or `bench` runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memcheck_core::device::Family;
use memcheck_core::shape::Scaling;
use memcheck_core::wire::protocol::Entry;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TestSubject {
    Test(Box<Entry>),
    Program {
        name: String,
        /// The source file of its `main`.
        file: PathBuf,
    },
}

static NO_CASE: BTreeMap<String, String> = BTreeMap::new();

impl TestSubject {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Test(entry) => &entry.name,
            Self::Program { name, .. } => name,
        }
    }

    pub(crate) fn file(&self) -> &Path {
        match self {
            Self::Test(entry) => &entry.file,
            Self::Program { file, .. } => file,
        }
    }

    /// A program has no line, so that reports refer to the start of its file.
    pub(crate) fn line(&self) -> u32 {
        self.test().map_or(1, |entry| entry.line)
    }

    pub(crate) fn case(&self) -> &BTreeMap<String, String> {
        self.test().map_or(&NO_CASE, |entry| &entry.case)
    }

    pub(crate) fn scaling(&self) -> &[Scaling] {
        self.test().map_or(&[], |entry| &entry.scaling)
    }

    /// A test without a device runs on the CPU.
    pub(crate) fn family_on(&self, family: Family) -> Family {
        self.test().map_or(family, |entry| entry.family_on(family))
    }

    pub(crate) fn test(&self) -> Option<&Entry> {
        match self {
            Self::Test(entry) => Some(entry),
            Self::Program { .. } => None,
        }
    }
}
