//! Baselines as insta snapshots: where they lie, reading one, and handing
//! insta a new one to compare and to keep as pending.

use std::path::{Path, PathBuf};

use memcheck_core::baseline::{self, Baseline, Figures, Holders};
use memcheck_core::device::Family;
use memcheck_core::location;
use memcheck_core::record::{Facts, Record};
use memcheck_core::tolerance::Tolerance;

use crate::description::Description;

/// The file of a test's baseline: beside its source, as insta names it.
pub(crate) fn path(description: &Description, workspace: &Path, family: Family) -> PathBuf {
    location::baseline(workspace, Path::new(description.file), &description.snapshot_stem(), family)
}

/// Reads the baseline at `path`.
pub(crate) fn load(path: &Path) -> Baseline {
    Baseline::from_file(std::fs::read_to_string(path))
}

/// insta's view of "the same": figures within the tolerance, under the same
/// conditions.
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

/// Lets insta compare the figures of `record` with what it finds, and keep
/// them as a pending snapshot where they differ. Returns that file, if any:
/// there is none for a source outside the workspace, whose path has no place
/// in the folder that mirrors it.
///
/// # Errors
/// When insta could not write it: a full disk, a read-only tree.
pub(crate) fn assert(
    description: &Description,
    workspace: &Path,
    record: &Record,
    baseline: &Baseline,
) -> Result<Option<PathBuf>, String> {
    let target = path(description, workspace, record.family);
    let Some(pending) = pending_path(workspace, &target) else { return Ok(None) };
    let facts: &Facts = &record.facts;
    let mut settings = insta::Settings::new();
    // Said outright: what insta makes of a source path with `..` it refuses.
    settings.set_snapshot_path(target.parent().unwrap_or(workspace));
    settings.set_snapshot_suffix(record.family.name());
    settings.set_omit_expression(true);
    settings.set_info(facts);
    settings.set_comparator(Box::new(Within {
        tolerance: record.limits.tolerance.value,
        same_conditions: matches!(baseline, Baseline::Found { facts: then, .. } if then == facts),
    }));
    let figures = Figures::of(record).to_yaml(&Holders::of(record));
    let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        settings.bind(|| (description.snapshot)(description.name, &figures));
    }));
    match written {
        Ok(()) => Ok(pending.exists().then_some(pending)),
        Err(payload) => {
            // Half a file is worse than none: what is accepted must be whole.
            let _ = std::fs::remove_file(&pending);
            Err(crate::outcome::panic_message(&*payload))
        }
    }
}

/// Removes what an earlier run left to be accepted.
pub(crate) fn discard_pending(workspace: &Path, snapshot: &Path) {
    if let Some(pending) = pending_path(workspace, snapshot) {
        let _ = std::fs::remove_file(pending);
    }
}

/// Where insta keeps what is not accepted yet: beside the snapshot, or in a
/// folder that mirrors the workspace, which has no place for one outside it.
fn pending_path(workspace: &Path, snapshot: &Path) -> Option<PathBuf> {
    let snapshot = match std::env::var_os("INSTA_PENDING_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => Path::new(&dir).join(snapshot.strip_prefix(workspace).ok()?),
        None => snapshot.to_owned(),
    };
    Some(snapshot.with_extension("snap.new"))
}
