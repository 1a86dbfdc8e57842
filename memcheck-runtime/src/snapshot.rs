//! The baselines of this executable's tests.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use memcheck_core::device::Family;
use memcheck_core::judgement::location::{self, Roots};

use crate::description::Description;

/// The path of a test's baseline: next to its source file, or at the same place of the folder of
/// baselines, with the name that insta gives it.
pub(crate) fn path(description: &Description, roots: Roots<'_>, family: Family) -> PathBuf {
    location::baseline(roots, Path::new(description.file), &description.snapshot_stem(), family)
}

/// The variable by which `cargo insta test --unreferenced` asks for the snapshots of all tests.
const REFERENCES: &str = "INSTA_SNAPSHOT_REFERENCES_FILE";

/// Adds baselines to the list of the snapshots in use, because `cargo insta` deletes the others.
/// `baselines` is not called if nothing asks for the list.
///
/// # Errors
/// If the list cannot be written.
pub(crate) fn list_referenced(baselines: impl FnOnce() -> Vec<PathBuf>) -> io::Result<()> {
    let Some(list) = std::env::var_os(REFERENCES) else { return Ok(()) };
    let line = |path: PathBuf| format!("{}\n", path.display());
    let lines: String = baselines().into_iter().map(line).collect();
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(list)?;
    file.write_all(lines.as_bytes())
}
