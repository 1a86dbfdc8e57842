//! The verdict on a test: how it ended, with its findings.

use serde::{Deserialize, Serialize};

use crate::judgement::finding::{Code, Finding};

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Measured, and within its limits.
    Passed,
    /// Within its limits, but a person must review a denied bookkeeping finding.
    NeedsReview,
    /// A measured finding.
    Failed,
    /// The instrument did not see all events that the verdict depends on.
    NotMeasured,
    /// Not run.
    Ignored,
}

impl Status {
    /// Its name in reports, as in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::NeedsReview => "needs-review",
            Self::Failed => "failed",
            Self::NotMeasured => "not-measured",
            Self::Ignored => "ignored",
        }
    }

    /// True if the test ran and did not pass.
    pub fn fails(self) -> bool {
        matches!(self, Self::Failed | Self::NotMeasured)
    }
}

/// The verdict on a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// How the test ended.
    pub status: Status,
    /// The findings, the most severe first. Allowed findings are left out.
    pub findings: Vec<Finding>,
    /// The codes of those findings that are denied bookkeeping.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<Code>,
}

impl Verdict {
    /// True if the verdict has a finding of this kind.
    pub fn has(&self, code: Code) -> bool {
        self.findings.iter().any(|finding| finding.code == code)
    }
}
