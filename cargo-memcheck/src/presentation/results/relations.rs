//! Judges the limits that relate tests of several shards, when the shards are merged.

use std::collections::BTreeMap;
use std::path::Path;

use super::{MergedRun, ResultsError};
use crate::discovery::task::Relations;
use crate::execution::relations::{Judge, MeasuredFigures};

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
    let baselines = whole.run.roots().baselines.to_owned();
    let judge = Judge {
        baselines: &baselines,
        pending: Some(pending),
        levels: &levels,
        within: Some(within),
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
            judge.judge(&test.task, &mut test.outcome, &needs, measured_figures);
        } else if let Relations { snapshot: Some(law), text, .. } = &test.outcome.across {
            let kept = judge.keep(law, text.as_deref());
            let path = law.clone();
            test.outcome.across.pending = kept.map_err(|error| ResultsError::Io(path, error))?;
        }
    }
    Ok(())
}
