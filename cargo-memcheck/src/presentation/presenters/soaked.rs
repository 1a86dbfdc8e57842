//! The sentence about the soak of a test, in the words of every form of output.

use crate::discovery::task::TestOutcome;

/// `None` for a soak that ended early, because that is a finding.
pub(super) fn note(outcome: &TestOutcome) -> Option<String> {
    let soaked = outcome.report.as_ref()?.record.soaked.as_ref()?;
    let is_reported = soaked.has_begun() && soaked.ended.is_some();
    (!is_reported).then(|| format!("soak: {}", soaked.sentence()))
}
