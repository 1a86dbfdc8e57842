//! The notes about files that are in the one memory of host and device twice, in the words of every
//! form of output.

use crate::discovery::task::TestOutcome;

pub(super) fn notes(outcome: &TestOutcome) -> Vec<String> {
    let report = outcome.report.as_ref();
    report.map(|report| report.record.files_held_twice()).unwrap_or_default()
}
