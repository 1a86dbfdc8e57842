//! Judges the limits that relate tests of several shards, when the shards are merged.

use std::collections::BTreeMap;
use std::path::Path;

use memcheck_conduct::Conductor;
use memcheck_conduct::snapshots::Snapshots;
use memcheck_core::judgement::location::Roots;
use memcheck_core::runs::relations::across;

use super::{MergedRun, ResultsError};
use crate::discovery::task::Relations;
use crate::execution::relations::MeasuredFigures;

/// Reads only baselines in the folder `within`.
pub(crate) fn judge_relations(
    whole: &mut MergedRun,
    pending: &Path,
    within: &Path,
) -> Result<(), ResultsError> {
    let mut measured_figures: BTreeMap<String, MeasuredFigures> = BTreeMap::new();
    for test in &whole.tests {
        measured_figures.entry(test.task.leg.name()).or_default().add(&test.task, &test.outcome);
    }
    let levels = whole.run.levels();
    let (workspace, baselines) =
        (whole.run.workspace.clone(), whole.run.roots().baselines.to_owned());
    let roots = Roots::new(&workspace, Some(&baselines));
    let conductor = Conductor {
        snapshots: Snapshots { roots, pending: Some(pending), writes: true },
        level: &|code| levels.of(code),
    };
    for test in &mut whole.tests {
        let Some(measured_figures) = measured_figures.get(&test.task.leg.name()) else { continue };
        if let Some(mut needs) = test.outcome.across.left.take() {
            // The largest case of one shard may not be the largest of all shards. Only the largest
            // case that ran carries the laws.
            let last = needs.members.iter().rev().map(|(_, other)| &other.test);
            let mut ran = last.filter(|name| measured_figures.of(&test.task, name).is_some());
            if ran.next().is_none_or(|name| name != test.task.name()) {
                (needs.members, needs.law) = (Vec::new(), None);
            }
            let Some(report) = &test.outcome.report else { continue };
            let (record, own) = (&report.record, &test.outcome.verdict.findings);
            let across =
                measured_figures.others(&test.task, (record, &needs), Some(within), |others| {
                    across(record, own, others)
                });
            test.outcome.add(across.findings.clone(), conductor.level);
            test.outcome.keep_laws(&across, &needs, &conductor);
            // The figures of a test that broke a limit must not become the baseline.
            if let Some(report) = test.outcome.report.as_mut().filter(|_| across.too_much)
                && report.pending.take().is_some()
                && let Some(snapshot) = &report.snapshot
            {
                let put = conductor.snapshots.put(snapshot, None);
                put.map_err(|error| ResultsError::Io(snapshot.clone(), error))?;
            }
        } else if let Relations { snapshot: Some(law), text, .. } = &test.outcome.across {
            let kept = conductor.snapshots.put(law, text.as_deref());
            let path = law.clone();
            test.outcome.across.pending = kept.map_err(|error| ResultsError::Io(path, error))?;
        }
    }
    Ok(())
}
