//! The sentence about the fault sweep of a test, in the words of every form of output.

use memcheck_core::measurement::fault_sweep;

use crate::discovery::task::TestOutcome;

pub(super) fn note(outcome: &TestOutcome) -> Option<String> {
    fault_sweep::note(&outcome.report.as_ref()?.record)
}
