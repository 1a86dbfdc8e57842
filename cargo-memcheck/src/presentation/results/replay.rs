//! Presents the results of a finished run in the order of the run: device by device.

use std::collections::BTreeMap;

use super::{MergedRun, ResultsError, Test};
use crate::presentation::events::Presenter;
use crate::presentation::tally::Tally;
use crate::system::error::Failure;

/// A test that is in memory, or in a file.
pub(crate) trait Replayed {
    /// The name of its leg.
    fn leg(&self) -> String;
    fn read(self) -> Result<Test, ResultsError>;
}

impl Replayed for Test {
    fn leg(&self) -> String {
        self.task.leg.name()
    }

    fn read(self) -> Result<Test, ResultsError> {
        Ok(self)
    }
}

/// `notify` must pass each event to all presenters. The caller presents the end of the run. A test
/// that cannot be read ends the replay, and is the failure of the tally.
pub(crate) fn replay<T: Replayed>(
    whole: MergedRun<T>,
    mut notify: impl FnMut(&mut dyn FnMut(&mut dyn Presenter)),
) -> Tally {
    let MergedRun { run, legs, proofs, tests, killed, notes, mut tally } = whole;
    // A search for the tests of each leg would take time in proportion to their product.
    let mut by_leg: BTreeMap<String, Vec<T>> = BTreeMap::new();
    for test in tests {
        by_leg.entry(test.leg()).or_default().push(test);
    }
    if let Some(origin) = &run.origin {
        notify(&mut |to| to.run_started(origin));
    }
    for (leg, count) in &legs {
        notify(&mut |to| to.leg_started(leg, *count));
        if let Some(proof) = proofs.get(&leg.name()) {
            notify(&mut |to| to.proof(leg, proof));
        }
        for test in by_leg.remove(&leg.name()).unwrap_or_default() {
            let test = match test.read() {
                Ok(test) => test,
                Err(error) => {
                    tally.failure = Some((&Failure::from(error)).into());
                    return tally;
                }
            };
            tally.add(&test.outcome);
            notify(&mut |to| to.test_finished(&test.task, &test.outcome));
        }
        for (task, outcome) in killed.iter().filter(|(task, _)| task.leg.name() == leg.name()) {
            tally.add(outcome);
            notify(&mut |to| to.test_finished(task, outcome));
        }
    }
    for note in &notes {
        tally.note(note);
        notify(&mut |to| to.note(note));
    }
    tally.sort();
    tally
}
