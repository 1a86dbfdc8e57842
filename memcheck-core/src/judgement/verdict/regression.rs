//! Compares the figures with the baseline: regressions, improvements, uncomparable baselines. No hint
//! advises to accept figures, because only the writer of the pending snapshot knows if there is one.

use crate::judgement::baseline::{self, Baseline, BaselineChange, Figures, Holders};
use crate::judgement::blame;
use crate::judgement::finding::{Code, Finding, Site};
use crate::limits::Limits;
use crate::measurement::phase;
use crate::measurement::record::Record;
use crate::size::both;

pub(super) fn compare_with_baseline(
    record: &Record,
    baseline: &Baseline,
    limits: &Limits,
) -> Vec<Finding> {
    let (figures, holders, facts) = match baseline {
        Baseline::Off => return Vec::new(),
        Baseline::Missing => {
            return vec![Finding::new(Code::MissingBaseline, "the test has no baseline yet")];
        }
        Baseline::Corrupt(why) => {
            return vec![
                Finding::new(Code::CorruptBaseline, format!("the baseline cannot be used: {why}"))
                    .hint("restore the file from version control"),
            ];
        }
        Baseline::Found { figures, holders, facts } => (figures, holders, facts),
    };
    if let Some(conditions) = baseline::other_conditions(facts, &record.facts) {
        return vec![
            Finding::new(
                Code::UncomparableBaseline,
                format!("the baseline was {conditions}, so the figures cannot be compared"),
            )
            .hint("run under the same conditions"),
        ];
    }
    let changes = baseline::changes(figures, &Figures::of(record), limits.tolerance.value);
    if let Some(unmatched) =
        changes.iter().find(|change| change.then.is_none() || change.now.is_none())
    {
        let figure = format!("`{}` of {}", unmatched.figure, unmatched.space);
        let message = match unmatched.then {
            None => format!("the baseline lacks {figure}"),
            Some(_) => format!("the baseline has {figure}, which the run did not measure"),
        };
        return vec![Finding::new(Code::UncomparableBaseline, message)];
    }
    let now = Holders::of(record);
    changes
        .iter()
        .filter_map(|change| judge_change(change, limits))
        .map(|finding| match (finding.code, finding.space) {
            // The call sites are known at the peak of the body, which can be in another phase.
            (Code::PeakRegression, _) if finding.phase.is_some() => finding,
            (Code::PeakRegression, Some(space)) => {
                let sites = blame::at_peak(record, space);
                let (mut grown, mut shrunk) =
                    (now.grown(holders, space), holders.shrunk(record, space));
                for holder in grown.iter_mut().chain(&mut shrunk) {
                    let site = sites.iter().find(|site| blame::label(site) == holder.holder);
                    holder.place = site.and_then(Site::place);
                }
                Finding { grown, shrunk, sites, ..finding }
            }
            (Code::AllocationsRegression, Some(space)) => {
                let grown = now.grown(holders, space);
                let mut sites = blame::allocating(record, space);
                // The baseline has the holders of its peak, and no number of allocations by line.
                let is_other = |site: &Site| {
                    let label = blame::label(site);
                    !grown.iter().any(|holder| holder.is_new() && holder.holder == label)
                };
                sites.sort_by_cached_key(is_other);
                for site in &mut sites {
                    let known = match is_other(site) {
                        true => "the baseline has no lines to compare with",
                        false => "new at the peak",
                    };
                    site.note = site.note.take().map(|note| format!("{note}; {known}"));
                }
                Finding { sites, ..finding }
            }
            _ => finding,
        })
        .collect()
}

pub(super) fn comparable_figures<'a>(
    record: &Record,
    baseline: &'a Baseline,
    limits: &Limits,
) -> Option<&'a Figures> {
    let Baseline::Found { figures, facts, .. } = baseline else { return None };
    let changes = baseline::changes(figures, &Figures::of(record), limits.tolerance.value);
    let is_known = |change: &BaselineChange| change.then.is_some() && change.now.is_some();
    let same_facts = baseline::other_conditions(facts, &record.facts).is_none();
    (same_facts && changes.iter().all(is_known)).then_some(figures)
}

/// `None` if the figure is kept for information only.
fn judge_change(change: &BaselineChange, limits: &Limits) -> Option<Finding> {
    let (then, now) = (change.then?, change.now?);
    let space = change.space;
    let (phase, metric) = match phase::split(&change.figure) {
        Some((phase, metric)) => (Some(phase.to_owned()), metric),
        None => (None, change.figure.as_str()),
    };
    let count = metric == "allocations";
    let show = |value: u64| if count { value.to_string() } else { both(value) };
    let code = match now < then {
        true => Code::Improved,
        false => baseline::regression_of(&change.figure)?,
    };
    let tolerance = baseline::tolerance_of(&change.figure, limits.tolerance.value);
    Some(Finding {
        space: Some(space),
        figure: Some(now),
        phase,
        bytes_per_iteration: (metric == "growth").then_some(now),
        limit: (now > then).then(|| tolerance.ceiling(then)),
        baseline: Some(then),
        ..Finding::new(
            code,
            format!(
                "`{}` of {space} was {}, is {} ({}{})",
                change.figure,
                show(then),
                show(now),
                if now > then { "+" } else { "-" },
                show(now.abs_diff(then)),
            ),
        )
    })
}
