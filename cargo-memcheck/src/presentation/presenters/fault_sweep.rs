//! The sentence about the fault sweep of a test, in the words of every form of output.

use crate::discovery::task::TestOutcome;

pub(super) fn note(outcome: &TestOutcome) -> Option<String> {
    outcome.report.as_ref()?.record.fault_sweep_note()
}
