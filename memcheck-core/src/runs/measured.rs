//! A test with all of its runs: a pure function of them says which run is needed next, and another
//! one what they show together. Nothing here starts a process or writes a file.
//!
//! ```text
//! runs ──view──> one record of all runs ──next──> the run that is still needed
//!                                       └judge──> the verdict
//! ```

use super::merge::merge;
use super::next::needed;
use super::plan::{Explain, RunPlan, Stage};
use super::relations::Across;
use super::view::{Merged, View};
use crate::judgement::baseline::Figures;
use crate::judgement::finding::{Class, Finding};
use crate::judgement::verdict::{Verdict, conclude};
use crate::measurement::comparison;
use crate::measurement::record::Record;
use crate::measurement::repeats::Repeats;
use crate::measurement::soak::Soaked;
use crate::wire::protocol::Follow;

pub use super::view::{Gate, Run};

const NEVER_EXPLAINED: &str =
    "its line is not known, because `--explain never` runs no test with call stacks";

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
        left.copied().find_map(|stage| Some((stage, needed(stage, self.explain, &view)?)))
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
            merged = merge(view(merged), run);
        }
        if self.explain == Explain::Never {
            merged.unexplained.get_or_insert(NEVER_EXPLAINED);
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
        let of_figures = view.findings().cloned();
        let lost = view.lost().iter().cloned();
        let mut findings: Vec<Finding> = lost.chain(of_first).chain(of_figures).collect();
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
