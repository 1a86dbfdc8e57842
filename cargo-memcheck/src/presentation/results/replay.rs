//! Presents the results of a finished run in the order of the run: device by device.

use std::collections::BTreeMap;

use super::{MergedRun, Test};
use crate::presentation::events::Presenter;
use crate::presentation::tally::Tally;

/// `notify` must pass each event to all presenters. The caller presents the end of the run.
pub(crate) fn replay(
    whole: MergedRun,
    mut notify: impl FnMut(&mut dyn FnMut(&mut dyn Presenter)),
) -> Tally {
    let MergedRun { run: _, legs, proofs, tests, notes, mut tally } = whole;
    // A search for the tests of each leg would take time in proportion to their product.
    let mut by_leg: BTreeMap<String, Vec<&Test>> = BTreeMap::new();
    for test in &tests {
        by_leg.entry(test.task.leg.name()).or_default().push(test);
    }
    for (leg, count) in &legs {
        notify(&mut |to| to.leg_started(leg, *count));
        if let Some(proof) = proofs.get(&leg.name()) {
            notify(&mut |to| to.proof(leg, proof));
        }
        for test in by_leg.remove(&leg.name()).unwrap_or_default() {
            tally.add(&test.outcome);
            notify(&mut |to| to.test_finished(&test.task, &test.outcome));
        }
    }
    for note in &notes {
        tally.note(note);
        notify(&mut |to| to.note(note));
    }
    tally.sort();
    tally
}
