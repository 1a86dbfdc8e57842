//! Compares the figures with the baseline: regressions, improvements, uncomparable baselines.

use crate::judgement::baseline::{self, Baseline, BaselineChange, Figures, Holders};
use crate::judgement::blame;
use crate::judgement::finding::{Code, Finding, Site};
use crate::limits::Limits;
use crate::measurement::phase;
use crate::measurement::record::Record;
use crate::size::both;

const CHECK: &str = "check the figures, then run `cargo memcheck accept`";
const RESTORE_OR_ACCEPT: &str = "restore the file from version control, or accept the new figures \
                                 with `cargo memcheck accept`";
const SAME_OR_ACCEPT: &str = "run under the same conditions, or accept the new figures with `cargo \
                              memcheck accept`";
const ACCEPT: &str = "accept the new figures with `cargo memcheck accept`";
const LOWER: &str = "`cargo memcheck accept` makes the lower figure the new baseline";
/// The hint of a figure or a law above its baseline.
pub(crate) const IF_INTENDED: &str =
    "if this is intended, `cargo memcheck accept` makes it the new baseline";
/// The hint of a law without a baseline.
pub(crate) const CHECK_THE_LAW: &str = "check the law, then `cargo memcheck accept`";

/// Each hint that advises to accept, and what is left of it if no snapshot is pending.
const ADVICE: [(&str, Option<&str>); 7] = [
    (CHECK, None),
    (RESTORE_OR_ACCEPT, Some("restore the file from version control")),
    (SAME_OR_ACCEPT, Some("run under the same conditions")),
    (ACCEPT, None),
    (LOWER, None),
    (IF_INTENDED, None),
    (CHECK_THE_LAW, None),
];

/// Removes the advice to accept figures, for a test without a pending snapshot: of a test that leaks,
/// `accept` would find nothing to accept.
pub fn withdraw_advice(finding: &mut Finding) {
    let Some(hint) = finding.hint.take() else { return };
    let advised = ADVICE.iter().find_map(|(advice, left)| Some((left, hint.strip_prefix(advice)?)));
    let Some((left, more)) = advised else {
        finding.hint = Some(hint);
        return;
    };
    let more = more.trim_start_matches("; ");
    let parts: Vec<&str> = left.iter().copied().chain(Some(more)).collect();
    let left = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    finding.hint = (!left.is_empty()).then_some(left);
}

pub(super) fn compare_with_baseline(
    record: &Record,
    baseline: &Baseline,
    limits: &Limits,
) -> Vec<Finding> {
    let (figures, holders, facts) = match baseline {
        Baseline::Off => return Vec::new(),
        Baseline::Missing => {
            return vec![
                Finding::new(Code::MissingBaseline, "the test has no baseline yet").hint(CHECK),
            ];
        }
        Baseline::Corrupt(why) => {
            return vec![
                Finding::new(Code::CorruptBaseline, format!("the baseline cannot be used: {why}"))
                    .hint(RESTORE_OR_ACCEPT),
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
            .hint(SAME_OR_ACCEPT),
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
        return vec![Finding::new(Code::UncomparableBaseline, message).hint(ACCEPT)];
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
                Finding { sites: blame::allocating(record, space), ..finding }
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
    Some(
        Finding {
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
        }
        .hint(match code {
            Code::Improved => LOWER,
            _ => IF_INTENDED,
        }),
    )
}
