//! Relocates the paths in results from another machine, and writes their pending snapshots to the
//! folder that a run in CI uses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memcheck_conduct::snapshots::Snapshots;
use memcheck_core::judgement::location::{Roots, moved};
use memcheck_core::judgement::verdict::Status;
use memcheck_core::runs::relations::Needs;

use super::{MergedRun, Results, ResultsError, Test};
use crate::build::workspace::Places;
use crate::discovery::task::{Relations, TestSubject};

impl Results {
    pub(crate) fn relocate(&mut self, roots: Roots<'_>) {
        let relocation = self.relocate_run(roots);
        self.tests.iter_mut().for_each(|test| relocation.apply(test));
    }
}

impl<T> Results<T> {
    /// Relocates all paths except those of the tests, for which it returns the relocation.
    pub(super) fn relocate_run(&mut self, roots: Roots<'_>) -> Relocation {
        let run = &mut self.run;
        let workspace = (run.workspace.clone(), roots.workspace.to_owned());
        let of_run = run.roots().baselines.to_owned();
        // Without another folder, that of the run stays, or moves with the workspace that it is in.
        let of_report = roots
            .elsewhere()
            .map_or_else(|| moved(&of_run, &workspace.0, &workspace.1), |folder| folder.to_owned());
        run.workspace = roots.workspace.to_owned();
        run.baselines = Some(of_report.clone()).filter(|folder| *folder != run.workspace);
        let relocation = Relocation { workspace, baselines: (of_run, of_report) };
        let paths = self.notes.iter_mut().filter_map(|note| note.path.as_mut());
        paths.for_each(|path| relocation.relocate_baseline(path));
        relocation
    }
}

/// From the folders of one machine to those of another.
#[derive(Debug)]
pub(super) struct Relocation {
    workspace: (PathBuf, PathBuf),
    baselines: (PathBuf, PathBuf),
}

impl Relocation {
    fn relocate(&self, path: &mut PathBuf) {
        let (from, to) = &self.workspace;
        *path = moved(path, from, to);
    }

    /// Pending baselines can also be below the workspace, in its target directory.
    fn relocate_baseline(&self, path: &mut PathBuf) {
        let (from, to) = &self.baselines;
        match path.starts_with(from) {
            true => *path = moved(path, from, to),
            false => self.relocate(path),
        }
    }

    pub(super) fn apply(&self, test: &mut Test) {
        self.relocate(&mut test.task.folder);
        if let TestSubject::Test(entry) = &mut test.task.subject {
            self.relocate(&mut entry.manifest_dir);
        }
        let baseline = |path: &mut PathBuf| self.relocate_baseline(path);
        let Relations { left, snapshot, pending, .. } = &mut test.outcome.across;
        snapshot.iter_mut().chain(pending).for_each(baseline);
        left.iter_mut().flat_map(Needs::paths).for_each(baseline);
        if let Some(report) = &mut test.outcome.report {
            report.snapshot.iter_mut().chain(&mut report.pending).for_each(baseline);
        }
    }
}

/// Below the workspace's target directory. Each test replaces its own snapshot.
pub(crate) fn join(whole: &mut MergedRun, places: &Places) -> Result<(), ResultsError> {
    let (workspace, folder) = (whole.run.workspace.clone(), places.pending_directory());
    let baselines = whole.run.roots().baselines.to_owned();
    let roots = Roots::new(&workspace, Some(&baselines));
    let to = Snapshots { roots, pending: Some(&folder), writes: true };
    let put = |snapshot: &Path, text: Option<&str>| {
        to.put(snapshot, text).map_err(|error| ResultsError::Io(snapshot.to_owned(), error))
    };
    let of = |test: &Test| test.outcome.report.as_ref()?.snapshot.clone();
    let snapshots: Vec<Option<PathBuf>> = whole.tests.iter().map(of).collect();
    // All old snapshots must be removed before a new one is written, because devices of one family
    // share a snapshot.
    for snapshot in snapshots.iter().flatten() {
        put(snapshot, None)?;
    }
    let mut latest: BTreeMap<&Path, &str> = BTreeMap::new();
    for (test, snapshot) in whole.tests.iter().zip(&snapshots) {
        let Some(snapshot) = snapshot else { continue };
        match &test.pending {
            Some(text) => {
                latest.insert(snapshot, text);
            }
            // A failure removes the snapshot of an earlier device, as it does in a run.
            None if discards(test.outcome.verdict.status) => {
                latest.remove(snapshot.as_path());
            }
            None => {}
        }
    }
    let mut written: BTreeMap<PathBuf, Option<PathBuf>> = BTreeMap::new();
    for (snapshot, text) in latest {
        written.insert(snapshot.to_owned(), put(snapshot, Some(text))?);
    }
    for (test, snapshot) in whole.tests.iter_mut().zip(snapshots) {
        let is_pending = test.pending.is_some();
        let Some(report) = &mut test.outcome.report else { continue };
        let of_test = snapshot.filter(|_| is_pending);
        report.pending = of_test.and_then(|snapshot| written.get(&snapshot).cloned().flatten());
    }
    Ok(())
}

/// Such a test removes the pending snapshot of an earlier run.
fn discards(status: Status) -> bool {
    matches!(status, Status::Failed | Status::NotMeasured)
}
