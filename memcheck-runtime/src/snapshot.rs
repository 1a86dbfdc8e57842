//! Baselines as insta snapshots: their paths, reading one, and comparing new figures with it, which
//! become a pending snapshot if they differ.

#[cfg(feature = "insta")]
mod comparator;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use memcheck_core::device::Family;
use memcheck_core::input;
use memcheck_core::judgement::baseline::{Baseline, Figures, Holders};
use memcheck_core::judgement::location::{self, Roots};
use memcheck_core::judgement::snapshot::{NewSnapshot, put_pending};
use memcheck_core::measurement::record::Record;
use memcheck_core::wire::protocol::Job;

use crate::description::Description;

/// The path of a test's baseline: next to its source file, or at the same place of the folder of
/// baselines, with the name that insta gives it.
pub(crate) fn path(description: &Description, roots: Roots<'_>, family: Family) -> PathBuf {
    location::baseline(roots, Path::new(description.file), &description.snapshot_stem(), family)
}

pub(crate) fn load(path: &Path) -> Baseline {
    Baseline::from_file(input::read_text(path, input::SNAPSHOT))
}

/// Writes the figures of `record` as a pending snapshot if they differ from the baseline, else removes
/// an earlier one. Returns the path if one was written. Under a plain harness in CI, nothing is written.
///
/// # Errors
/// If a file cannot be written, for example because the disk is full or the tree is read-only.
pub(crate) fn keep(
    description: &Description,
    job: &Job,
    record: &Record,
    baseline: &Baseline,
) -> io::Result<Option<PathBuf>> {
    if job.alone && job.ci {
        return Ok(None);
    }
    let figures = Figures::of(record);
    let file = Path::new(description.file);
    let new = NewSnapshot {
        source: file.strip_prefix(&job.workspace).unwrap_or(file),
        line: Some(description.line),
        facts: &record.facts,
        body: &figures.to_yaml(&Holders::of(record)),
    }
    .text();
    let accepted = path(description, job.roots(), record.family);
    let is_same = match baseline {
        // insta's reader has no limits, so that ours must have accepted the baseline first.
        #[cfg(feature = "insta")]
        Baseline::Found { facts, .. } if *facts == record.facts => {
            let file = job.report.with_extension("snap");
            comparator::matches(&accepted, &new, &file, record.limits.tolerance.value)?
        }
        #[cfg(not(feature = "insta"))]
        Baseline::Found { facts, figures: then, .. } if *facts == record.facts => {
            memcheck_core::judgement::baseline::changes(
                then,
                &figures,
                record.limits.tolerance.value,
            )
            .is_empty()
        }
        _ => false,
    };
    put(job.roots(), &accepted, (!is_same).then_some(new.as_str()))
}

/// Removes the pending snapshot of an earlier run.
pub(crate) fn discard_pending(roots: Roots<'_>, snapshot: &Path) {
    let _ = put(roots, snapshot, None);
}

/// A source outside the workspace has no pending snapshot if `INSTA_PENDING_DIR` is set, because
/// that folder mirrors the workspace.
fn put(roots: Roots<'_>, snapshot: &Path, text: Option<&str>) -> io::Result<Option<PathBuf>> {
    let folder = std::env::var_os("INSTA_PENDING_DIR").filter(|dir| !dir.is_empty());
    let mirror = folder.as_ref().map(|folder| (Path::new(folder), roots.baselines));
    put_pending(snapshot, mirror, text)
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
