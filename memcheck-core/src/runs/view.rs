//! Several runs of a test, seen together and judged by its baseline.

use std::cell::OnceCell;

use super::plan::{RunPlan, Stage};
use super::relations::Across;
use crate::judgement::baseline::{Baseline, is_new};
use crate::judgement::finding::{Code, Finding, Level};
use crate::judgement::verdict::{self, is_worth_keeping};
use crate::measurement::record::Record;

/// One run of a test, as its process left it.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What it was for.
    pub stage: Stage,
    /// Its settings.
    pub plan: RunPlan,
    /// What it measured; `None` if its record cannot be trusted, or if it was not started.
    pub record: Option<Record>,
    /// How its process ended, if not as that of a complete run.
    pub finding: Option<Finding>,
}

/// What a test is judged by, in addition to its runs.
pub struct Gate<'a> {
    /// Its baseline.
    pub baseline: &'a Baseline,
    /// The configured level of a code.
    pub level: &'a dyn Fn(Code) -> Level,
}

impl std::fmt::Debug for Gate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("baseline", &self.baseline).finish_non_exhaustive()
    }
}

impl Gate<'_> {
    /// The findings of one record.
    pub(super) fn judge(&self, record: &Record) -> Vec<Finding> {
        verdict::judge(record, self.baseline, &record.limits, self.level).findings
    }
}

/// What the runs of a test show together.
#[derive(Debug)]
pub(super) struct View<'a> {
    merged: Merged,
    gate: &'a Gate<'a>,
    across: Option<&'a Across>,
    own: OnceCell<Vec<Finding>>,
}

impl<'a> View<'a> {
    pub(super) fn new(merged: Merged, gate: &'a Gate<'a>, across: Option<&'a Across>) -> Self {
        Self { merged, gate, across, own: OnceCell::new() }
    }

    pub(super) fn record(&self) -> &Record {
        &self.merged.record
    }

    pub(super) fn gate(&self) -> &'a Gate<'a> {
        self.gate
    }

    pub(super) fn lost(&self) -> &[Finding] {
        &self.merged.lost
    }

    pub(super) fn into_merged(self) -> Merged {
        self.merged
    }

    /// The findings of the figures of this test alone.
    pub(super) fn own(&self) -> &[Finding] {
        self.own.get_or_init(|| {
            let mut findings = self.gate.judge(&self.merged.record);
            hint(&mut findings, self.merged.unexplained);
            findings
        })
    }

    /// All findings of the figures.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.own().iter().chain(self.across.iter().flat_map(|across| &across.findings))
    }

    /// True if the figures are new and may become the baseline.
    pub(super) fn is_pending(&self) -> bool {
        let record = &self.merged.record;
        record.limits.baseline.value
            // The run that decides has all figures.
            && !record.is_undecided()
            && is_new(record, self.gate.baseline)
            && !self.across.is_some_and(|across| across.too_much)
            && self.merged.lost.is_empty()
            && is_worth_keeping(self.own())
    }
}

/// What several runs show together.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) record: Record,
    /// The reason why call sites are missing.
    pub(super) unexplained: Option<&'static str>,
    /// The ends of processes that have lost a part of the verdict.
    pub(super) lost: Vec<Finding>,
}

impl From<Record> for Merged {
    fn from(record: Record) -> Self {
        Self { record, unexplained: None, lost: Vec::new() }
    }
}

/// Adds the reason to each finding about memory.
pub(super) fn hint(findings: &mut [Finding], unexplained: Option<&str>) {
    let Some(why) = unexplained else { return };
    for finding in findings.iter_mut().filter(|finding| finding.code.is_about_memory()) {
        let own = finding.hint.take().map(|hint| format!("{hint}; "));
        finding.hint = Some(format!("{}{why}", own.unwrap_or_default()));
    }
}
