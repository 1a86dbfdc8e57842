//! Relocates the paths in results from another machine, and writes their pending snapshots to the
//! folder that a run in CI uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use memcheck_core::judgement::snapshot::{pending_path, remove_pending, replace_pending};
use memcheck_core::judgement::verdict::Status;
use memcheck_core::runs::relations::Needs;

use super::{MergedRun, Results, ResultsError, Test};
use crate::build::workspace::Places;
use crate::discovery::task::{Relations, TestSubject};

impl Results {
    pub(crate) fn relocate(&mut self, root: &Path) {
        let relocation = self.relocate_run(root);
        self.tests.iter_mut().for_each(|test| relocation.apply(test));
    }
}

impl<T> Results<T> {
    /// Relocates all paths except those of the tests, for which it returns the relocation.
    pub(super) fn relocate_run(&mut self, root: &Path) -> Relocation {
        let from = std::mem::replace(&mut self.run.workspace, root.to_owned());
        let relocation = Relocation { from, to: root.to_owned() };
        let paths = self.notes.iter_mut().filter_map(|note| note.path.as_mut());
        paths.for_each(|path| relocation.relocate(path));
        relocation
    }
}

/// From the workspace of one machine to that of another.
#[derive(Debug)]
pub(super) struct Relocation {
    from: PathBuf,
    to: PathBuf,
}

impl Relocation {
    fn relocate(&self, path: &mut PathBuf) {
        if let Ok(rest) = path.strip_prefix(&self.from) {
            *path = self.to.join(rest);
        }
    }

    pub(super) fn apply(&self, test: &mut Test) {
        let moved = |path: &mut PathBuf| self.relocate(path);
        moved(&mut test.task.folder);
        if let TestSubject::Test(entry) = &mut test.task.subject {
            moved(&mut entry.manifest_dir);
        }
        let Relations { left, snapshot, pending, .. } = &mut test.outcome.across;
        snapshot.iter_mut().chain(pending).for_each(moved);
        left.iter_mut().flat_map(Needs::paths).for_each(moved);
        if let Some(report) = &mut test.outcome.report {
            report.snapshot.iter_mut().chain(&mut report.pending).for_each(moved);
        }
    }
}

/// Below the workspace's target directory. Each test replaces its own snapshot.
pub(crate) fn join(whole: &mut MergedRun, places: &Places) -> Result<(), ResultsError> {
    let root = whole.run.workspace.clone();
    let snapshots: Vec<Option<PathBuf>> = whole
        .tests
        .iter()
        .map(|test| {
            let snapshot = test.outcome.report.as_ref()?.snapshot.as_deref()?;
            pending_path(snapshot, Some((&places.pending_directory(), &root)))
        })
        .collect();
    // All old snapshots must be removed before a new one is written, because devices of one family
    // share a snapshot.
    for path in snapshots.iter().flatten() {
        remove_pending(path).map_err(|error| ResultsError::Io(path.clone(), error))?;
    }
    let mut latest: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for (test, place) in whole.tests.iter().zip(&snapshots) {
        let Some(path) = place else { continue };
        match &test.pending {
            Some(text) => drop(latest.insert(path.clone(), text)),
            // A failure removes the snapshot of an earlier device, as it does in a run.
            None if discards(test.outcome.verdict.status) => drop(latest.remove(path)),
            None => {}
        }
    }
    for (path, text) in &latest {
        replace_pending(path, text).map_err(|error| ResultsError::Io(path.clone(), error))?;
    }
    let written: BTreeSet<PathBuf> = latest.into_keys().collect();
    for (test, place) in whole.tests.iter_mut().zip(snapshots) {
        let is_pending = test.pending.is_some();
        let Some(report) = &mut test.outcome.report else { continue };
        report.pending = place.filter(|path| is_pending && written.contains(path));
    }
    Ok(())
}

/// Such a test removes the pending snapshot of an earlier run.
fn discards(status: Status) -> bool {
    matches!(status, Status::Failed | Status::NotMeasured)
}
