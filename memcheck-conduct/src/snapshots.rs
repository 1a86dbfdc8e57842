//! Baselines as insta snapshots: reading one, and writing the figures of a test as a pending one,
//! which `cargo memcheck accept` or `cargo insta review` makes the baseline.
//!
//! The insta crate is a dependency of the command alone. In a user's test executable it would switch
//! on a feature of once_cell that candle leaves off, so that candle would be compiled once more.

use std::io;
use std::path::{Path, PathBuf};

use memcheck_core::input;
use memcheck_core::judgement::baseline::{Baseline, Figures, Holders};
use memcheck_core::judgement::location::Roots;
use memcheck_core::judgement::snapshot::{NewSnapshot, put_pending};
use memcheck_core::measurement::record::Record;

/// Reads the baseline at this path.
pub fn load(snapshot: &Path) -> Baseline {
    Baseline::from_file(input::read_text(snapshot, input::SNAPSHOT))
}

/// Where the pending snapshots of a workspace are.
#[derive(Debug, Clone, Copy)]
pub struct Snapshots<'a> {
    /// The folders of sources and baselines.
    pub roots: Roots<'a>,
    /// A folder that mirrors that of the baselines; `None` if pending snapshots are next to them.
    pub pending: Option<&'a Path>,
    /// False in CI under a plain harness, where nothing is written.
    pub writes: bool,
}

impl Snapshots<'_> {
    /// Replaces the pending snapshot of `snapshot` by `text`, or removes it if there is no text.
    /// Returns the path if one was written. A snapshot outside of the workspace has none if there is
    /// a folder for pending ones.
    ///
    /// # Errors
    /// If a file cannot be written, for example because the disk is full or the tree is read-only.
    pub fn put(&self, snapshot: &Path, text: Option<&str>) -> io::Result<Option<PathBuf>> {
        // An outdated one is removed in any case, because a later `accept` would take it.
        if text.is_some() && !self.writes {
            return Ok(None);
        }
        let mirror = self.pending.map(|folder| (folder, self.roots.baselines));
        put_pending(snapshot, mirror, text)
    }
}

/// The text of the figures of a test.
pub(crate) fn text(record: &Record, source: &Path, line: Option<u32>) -> String {
    let body = &Figures::of(record).to_yaml(&Holders::of(record));
    NewSnapshot { source, line, facts: &record.facts, body }.text()
}
