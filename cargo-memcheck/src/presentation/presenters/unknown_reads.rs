//! The mark of a test that read unknown values of the simulated device, in the words of every form
//! of output.

use memcheck_core::measurement::unknown_reads::UnknownReads;
use memcheck_core::presentation::text;

use crate::discovery::task::TestOutcome;

pub(super) fn of(outcome: &TestOutcome) -> Option<&UnknownReads> {
    outcome.report.as_ref()?.record.values.as_ref()
}

/// A sentence about the reads, unless a finding contains it.
pub(super) fn note(outcome: &TestOutcome) -> Option<String> {
    text::unknown_reads_note(of(outcome)?, &outcome.verdict.findings)
}
