//! A test with all of its runs: a pure function of them says which run is needed next, and another
//! one what they show together. Nothing here starts a process or writes a file.
//!
//! ```text
//! runs ──view──> one record of all runs ──next──> the run that is still needed
//!                                       └judge──> the verdict
//! ```

use std::cell::OnceCell;

use super::merge::{self, Merged};
use super::plan::{Explain, RunPlan, Stage};
use super::relations::Across;
use crate::judgement::baseline::{Baseline, Figures, is_new};
use crate::judgement::finding::{Class, Code, Finding, Level};
use crate::judgement::verdict::{self, Verdict, conclude, is_worth_keeping};
use crate::measurement::comparison;
use crate::measurement::record::Record;
use crate::measurement::repeats::Repeats;
use crate::measurement::soak::Soaked;
use crate::wire::protocol::Follow;

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

/// The runs that a test has had so far.
#[derive(Debug, Clone)]
pub struct MeasuredTest {
    /// Whether runs have call stacks.
    pub explain: Explain,
    /// The stages that may follow the first, in order.
    pub stages: Vec<Stage>,
    /// All runs, the first one first.
    pub runs: Vec<Run>,
    /// The number of series that the user asked for, and the figures of those after this one.
    pub series: Option<(u32, Vec<Figures>)>,
    /// What other tests say about the figures, once these are known.
    pub across: Option<Across>,
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
    fn new(merged: Merged, gate: &'a Gate<'a>, across: Option<&'a Across>) -> Self {
        Self { merged, gate, across, own: OnceCell::new() }
    }

    pub(super) fn record(&self) -> &Record {
        &self.merged.record
    }

    pub(super) fn gate(&self) -> &'a Gate<'a> {
        self.gate
    }

    pub(super) fn into_merged(self) -> Merged {
        self.merged
    }

    /// The findings of the figures of this test alone.
    fn own(&self) -> &[Finding] {
        self.own.get_or_init(|| {
            let mut findings = self.gate.judge(&self.merged.record);
            merge::hint(&mut findings, self.merged.unexplained);
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

/// A test that no further run would change.
#[derive(Debug, Clone, PartialEq)]
pub struct Concluded {
    /// The figures of all runs; `None` if the first left none.
    pub record: Option<Record>,
    /// The verdict on them.
    pub verdict: Verdict,
    /// True if the figures are new and may become the baseline.
    pub is_pending: bool,
}

impl MeasuredTest {
    /// A test before its first run.
    pub fn new(explain: Explain, stages: impl Into<Vec<Stage>>) -> Self {
        Self { explain, stages: stages.into(), runs: Vec::new(), series: None, across: None }
    }

    /// The next run that the test needs; `None` if it needs none.
    pub fn next(&self, gate: &Gate<'_>) -> Option<(Stage, RunPlan)> {
        if self.runs.is_empty() {
            return Some((Stage::First, self.explain.first()));
        }
        let view = self.view(gate)?;
        let left = self.stages.iter().skip(self.passed());
        left.copied().find_map(|stage| Some((stage, stage.run(self.explain, &view)?)))
    }

    /// The number of stages up to that of the last run. A stage that was not needed then is not
    /// asked again, except that findings across tests come late and need call sites too.
    fn passed(&self) -> usize {
        let at = |stage, from| {
            let mut later = self.stages.iter().skip(from);
            later.position(|known| *known == stage).map(|number| from + number)
        };
        let last = self
            .runs
            .iter()
            .skip(1)
            .fold(0, |passed, run| at(run.stage, passed).map_or(passed, |number| number + 1));
        let is_explained = self.runs.iter().any(|run| run.stage == Stage::Explain);
        match at(Stage::Explain, 0) {
            Some(explain) if self.across.is_some() && !is_explained => last.min(explain),
            _ => last,
        }
    }

    /// `None` if the first run has no record.
    fn view<'a>(&'a self, gate: &'a Gate<'a>) -> Option<View<'a>> {
        let (first, further) = self.runs.split_first()?;
        let view = |merged| View::new(merged, gate, self.across.as_ref());
        let mut merged = Merged::from(first.record.clone()?);
        for run in further {
            merged = merge::merge(view(merged), run);
        }
        let record = &mut merged.record;
        if record.limits.max_rss_growth.value.is_some() && first.plan.follow != Follow::No {
            record.notes.push(
                "the growth of resident memory was not judged, because call stacks take memory too"
                    .to_owned(),
            );
        }
        if let Some((asked, series)) = &self.series {
            let mut runs = comparison::runs(record);
            runs.extend(series.iter().cloned());
            record.repeats = Some(Repeats { asked: Some(*asked), runs });
        }
        for stage in &self.stages {
            if let (Stage::Soak(time), None, Some(reason)) =
                (*stage, &record.soaked, record.refuses_soak())
            {
                record.soaked = Some(Soaked::refused(time, reason));
            }
        }
        Some(view(merged))
    }

    /// The verdict on all runs.
    pub fn judge(&self, gate: &Gate<'_>) -> Concluded {
        let of_first = self.runs.first().and_then(|run| run.finding.clone());
        let Some(view) = self.view(gate) else {
            let findings = of_first.into_iter().collect();
            let verdict = conclude(findings, gate.level);
            return Concluded { record: None, verdict, is_pending: false };
        };
        let is_pending = of_first.is_none() && view.is_pending();
        let lost = view.merged.lost.iter().cloned();
        let mut findings: Vec<Finding> =
            lost.chain(of_first).chain(view.findings().cloned()).collect();
        if self.across.is_some() {
            // What is about memory comes before bookkeeping, also across tests.
            findings.sort_by_key(|finding| finding.code.row().class == Class::Bookkeeping);
        }
        Concluded {
            verdict: conclude(findings, gate.level),
            record: Some(view.into_merged().record),
            is_pending,
        }
    }
}

#[cfg(test)]
mod tests;
