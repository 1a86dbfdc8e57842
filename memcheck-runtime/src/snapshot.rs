//! Baselines as insta snapshots: their paths, reading one, and comparing new figures with it, which
//! become a pending snapshot if they differ.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use memcheck_core::device::Family;
use memcheck_core::input;
use memcheck_core::judgement::baseline::{self, Baseline, Figures, Holders};
use memcheck_core::judgement::location::{self, Roots};
use memcheck_core::judgement::snapshot::{NewSnapshot, put_pending};
use memcheck_core::measurement::record::Record;
use memcheck_core::tolerance::Tolerance;
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

/// insta's comparison of snapshots: they are equal if the figures are within the tolerance and the
/// conditions are the same.
#[derive(Clone)]
struct Within {
    tolerance: Tolerance,
    same_conditions: bool,
}

impl insta::Comparator for Within {
    fn matches(&self, reference: &insta::Snapshot, test: &insta::Snapshot) -> bool {
        let figures = |snapshot: &insta::Snapshot| {
            snapshot.as_text().and_then(|text| Figures::from_yaml(&text.to_string()).ok())
        };
        match (figures(reference), figures(test)) {
            (Some(then), Some(now)) => {
                self.same_conditions && baseline::changes(&then, &now, self.tolerance).is_empty()
            }
            _ => false,
        }
    }

    fn dyn_clone(&self) -> Box<dyn insta::Comparator> {
        Box::new(self.clone())
    }
}

/// Writes the figures of `record` as a pending snapshot if insta's comparison finds that they differ
/// from the baseline, else removes an earlier one. Returns the path if one was written. Under a plain
/// harness in CI, nothing is written.
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
    let file = Path::new(description.file);
    let new = NewSnapshot {
        source: file.strip_prefix(&job.workspace).unwrap_or(file),
        line: Some(description.line),
        facts: &record.facts,
        body: &Figures::of(record).to_yaml(&Holders::of(record)),
    }
    .text();
    let accepted = path(description, job.roots(), record.family);
    let same_conditions =
        matches!(baseline, Baseline::Found { facts, .. } if *facts == record.facts);
    let comparator = Within { tolerance: record.limits.tolerance.value, same_conditions };
    // insta's reader has no limits, so that ours must have accepted the baseline first.
    let is_new = !same_conditions
        || !is_equal(&accepted, &new, &job.report.with_extension("snap"), &comparator)?;
    put(job.roots(), &accepted, is_new.then_some(new.as_str()))
}

/// insta reads snapshots only from files, so that both are written to `file`: the accepted one may
/// have been replaced by a file that must not be read.
fn is_equal(
    accepted: &Path,
    new: &str,
    file: &Path,
    comparator: &dyn insta::Comparator,
) -> io::Result<bool> {
    let Ok(accepted) = input::read_text(accepted, input::SNAPSHOT) else { return Ok(false) };
    let parse = |text: &str| -> io::Result<_> {
        std::fs::write(file, text)?;
        Ok(insta::Snapshot::from_file(file))
    };
    Ok(match (parse(&accepted)?, parse(new)?) {
        (Ok(accepted), Ok(new)) => comparator.matches(&accepted, &new),
        _ => false,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insta_reads_only_text_that_was_read_with_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let figures = "growth: 0\n  peak_allocated: 0\n  retained: 0\n  setup: 0";
        let text = &format!("---\nsource: mem.rs\n---\nhost:\n  {figures}\n");
        let comparator = Within { tolerance: Tolerance::NONE, same_conditions: true };
        let equal = |accepted: &str| {
            is_equal(&path(accepted), text, &path("new.snap"), &comparator).unwrap()
        };
        std::fs::write(path("a.snap"), text).unwrap();
        std::fs::write(path("b.snap"), text.replace("growth: 0", "growth: 1")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/dev/zero", path("c.snap")).unwrap();
        #[cfg(not(unix))]
        std::fs::write(path("c.snap"), vec![0; 5 << 20]).unwrap();
        assert_eq!(["a.snap", "b.snap", "c.snap"].map(equal), [true, false, false]);
        assert!(
            matches!(load(&path("c.snap")), Baseline::Corrupt(why) if why.contains("at most") || why.contains("the most is"))
        );
    }
}
