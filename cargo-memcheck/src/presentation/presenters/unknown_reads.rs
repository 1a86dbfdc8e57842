//! The mark of a test that read unknown values of the simulated device, in the words of every form
//! of output.

use memcheck_core::judgement::finding::Code;
use memcheck_core::measurement::unknown_reads::UnknownReads;

use crate::discovery::task::TestOutcome;

/// The page that explains the mark.
pub(super) const EXPLAINED: &str = "cargo memcheck explain unknown-values";

pub(super) fn of(outcome: &TestOutcome) -> Option<&UnknownReads> {
    outcome.report.as_ref()?.record.values.as_ref()
}

/// A sentence about the reads, unless a finding contains it.
pub(super) fn note(outcome: &TestOutcome) -> Option<String> {
    let sentence = of(outcome)?.sentence();
    let mut findings = outcome.verdict.findings.iter();
    let is_known =
        findings.any(|finding| finding.code == Code::NotMeasured && finding.message == sentence);
    (!is_known).then(|| format!("{sentence}: `{EXPLAINED}`"))
}
