//! The result of a test: what all its runs show, the verdict on it, and its baseline.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::judgement::finding::{Class, Code, Finding, Level};
use crate::judgement::verdict::{Verdict, conclude};
use crate::measurement::record::Record;

/// The result of a test whose runs are trusted. Stored results contain it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`crate::wire::protocol::VERSION`] of the writer.
    pub version: u32,
    /// The figures and facts of all runs.
    pub record: Record,
    /// The verdict on the record.
    pub verdict: Verdict,
    /// The path of the snapshot, accepted or not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub snapshot: Option<PathBuf>,
    /// The pending snapshot that was written, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pending: Option<PathBuf>,
}

/// A verdict, with the report that it rests on.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The report; `None` if no process left a record that can be trusted.
    pub report: Option<Report>,
}

impl Judged {
    /// The verdict of a test without a report.
    pub fn without_report(finding: Finding, level: impl Fn(Code) -> Level) -> Self {
        Self { verdict: conclude(vec![finding], level), report: None }
    }

    /// Adds findings that do not follow from the runs, such as those about a file that cannot be
    /// written. Bookkeeping stays last.
    pub fn add(
        &mut self,
        findings: impl IntoIterator<Item = Finding>,
        level: impl Fn(Code) -> Level,
    ) {
        let mut all = std::mem::take(&mut self.verdict.findings);
        all.extend(findings);
        all.sort_by_key(|finding| finding.code.row().class == Class::Bookkeeping);
        self.verdict = conclude(all, level);
        if let Some(report) = &mut self.report {
            report.verdict.clone_from(&self.verdict);
        }
    }
}
