//! Compares the figures with the baseline: regressions, improvements, uncomparable baselines. No hint
//! advises to accept figures, because only the writer of the pending snapshot knows if there is one.

use std::collections::HashMap;

use crate::judgement::baseline::{self, Baseline, BaselineChange, Figures, HolderChanges, Holders};
use crate::judgement::finding::{Code, Finding, GrownHolder, Site};
use crate::judgement::{blame, rise};
use crate::limits::Limits;
use crate::measurement::attribution::HolderKind;
use crate::measurement::phase;
use crate::measurement::record::Record;
use crate::size::both;
use crate::space::Space;

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
    changes
        .iter()
        .filter_map(|change| judge_change(change, limits))
        .map(|finding| match (finding.code, finding.space) {
            // The call sites are known at the peak of the body, which can be in another phase.
            (Code::PeakRegression, _) if finding.phase.is_some() => finding,
            (Code::PeakRegression, Some(space)) => explain_peak(finding, record, holders, space),
            (Code::AllocationsRegression, Some(space)) => {
                explain_allocations(finding, record, holders, space)
            }
            _ => finding,
        })
        .collect()
}

/// Adds the call sites that hold more or less at the peak, which add up to its rise.
fn explain_peak(finding: Finding, record: &Record, holders: &Holders, space: Space) -> Finding {
    let HolderChanges { mut grown, mut shrunk } = holders.changes(record, space);
    let held = blame::by_purpose_at_peak(record, space);
    // The first site of a description has the most bytes.
    let mut known: HashMap<String, (Option<String>, bool)> = HashMap::new();
    for (kind, site) in &held {
        let own = known.entry(blame::label(site)).or_insert_with(|| (site.place(), true));
        own.1 &= *kind == HolderKind::Setup;
    }
    for holder in grown.iter_mut().chain(&mut shrunk) {
        let Some((place, is_setup)) = known.get(&holder.holder) else { continue };
        // The memory of a body without iterations is always older than the first of them.
        holder.is_setup = *is_setup && record.iterated;
        holder.place.clone_from(place);
    }
    let rows = grown.iter().chain(&shrunk);
    let others = finding.baseline.zip(finding.figure).filter(|_| rows.clone().next().is_some());
    let other_holders = others.and_then(|(then, now)| GrownHolder::others(then, now, rows));
    let (sites, rise) = (blame::with_purposes(held), rise::of_peak(&grown));
    Finding { grown, shrunk, other_holders, sites, rise, ..finding }
}

/// Adds the call sites that allocate. The baseline has the holders of its peak, and no number of
/// allocations for each line.
fn explain_allocations(
    finding: Finding,
    record: &Record,
    holders: &Holders,
    space: Space,
) -> Finding {
    let grown = holders.changes(record, space).grown;
    let mut sites = blame::allocating(record, space);
    let is_other = |site: &Site| {
        let label = blame::label(site);
        !grown.iter().any(|holder| holder.is_new() && holder.holder == label)
    };
    sites.sort_by_cached_key(is_other);
    let new = sites.iter().filter(|site| !is_other(site)).count();
    for site in &mut sites {
        let known = match is_other(site) {
            true => "the baseline has no lines to compare with",
            false => "new at the peak",
        };
        site.note = site.note.take().map(|note| format!("{note}; {known}"));
    }
    let rise = (!sites.is_empty()).then(|| rise::of_allocations(new));
    Finding { sites, rise, ..finding }
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
