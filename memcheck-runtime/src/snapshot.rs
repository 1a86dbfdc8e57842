//! Baselines as insta snapshots: their paths, reading one, and passing new figures to insta, which
//! compares them and writes them as a pending snapshot.

use std::path::{Path, PathBuf};

use memcheck_core::device::Family;
use memcheck_core::judgement::baseline::{self, Baseline, Figures, Holders};
use memcheck_core::judgement::{location, pending};
use memcheck_core::measurement::record::{Facts, Record};
use memcheck_core::tolerance::Tolerance;

use crate::description::Description;

/// The path of a test's baseline: next to its source file, with the name that insta gives it.
pub(crate) fn path(description: &Description, workspace: &Path, family: Family) -> PathBuf {
    location::baseline(workspace, Path::new(description.file), &description.snapshot_stem(), family)
}

pub(crate) fn load(path: &Path) -> Baseline {
    Baseline::from_file(std::fs::read_to_string(path))
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

/// Makes insta compare the figures of `record` with the baseline, and write them as a pending
/// snapshot if they differ. Returns the path of the pending snapshot, if there is one. A source
/// outside the workspace has none if `INSTA_PENDING_DIR` is set, because that folder mirrors the
/// workspace.
///
/// # Errors
/// If insta could not write it, for example because the disk is full or the tree is read-only.
pub(crate) fn assert(
    description: &Description,
    workspace: &Path,
    record: &Record,
    baseline: &Baseline,
) -> Result<Option<PathBuf>, String> {
    let target = path(description, workspace, record.family);
    let Some(path) = pending_path(workspace, &target) else { return Ok(None) };
    let facts: &Facts = &record.facts;
    let mut settings = insta::Settings::new();
    // Set explicitly, because insta refuses the path that it derives from a source path with `..`.
    settings.set_snapshot_path(target.parent().unwrap_or(workspace));
    // insta does not shorten a name that is too long for a file, such as one with a long value.
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_suffix(record.family.name());
    settings.set_omit_expression(true);
    settings.set_info(facts);
    settings.set_comparator(Box::new(Within {
        tolerance: record.limits.tolerance.value,
        same_conditions: matches!(baseline, Baseline::Found { facts: then, .. } if then == facts),
    }));
    let figures = Figures::of(record).to_yaml(&Holders::of(record));
    let name = location::file_name(&description.snapshot_stem());
    let _lock = pending::lock(&target);
    let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        settings.bind(|| (description.snapshot)(&name, &figures));
    }));
    match written {
        Ok(()) => Ok(path.exists().then_some(path)),
        Err(payload) => {
            // An incomplete file must not stay, because it could be accepted.
            let _ = pending::remove(&path);
            Err(crate::outcome::panic_message(&*payload))
        }
    }
}

/// Removes the pending snapshot of an earlier run.
pub(crate) fn discard_pending(workspace: &Path, snapshot: &Path) {
    if let Some(path) = pending_path(workspace, snapshot) {
        let _ = pending::remove(&path);
    }
}

/// The path of insta's pending snapshot. `None` if it would be in the folder of `INSTA_PENDING_DIR`,
/// and the snapshot is outside the workspace.
fn pending_path(workspace: &Path, snapshot: &Path) -> Option<PathBuf> {
    let folder = std::env::var_os("INSTA_PENDING_DIR").filter(|dir| !dir.is_empty());
    pending::path(snapshot, folder.as_ref().map(|folder| (Path::new(folder), workspace)))
}
