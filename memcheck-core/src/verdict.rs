//! The verdict: a pure function of a record, its baseline and its limits.
//!
//! Every rule is a function of its own that returns what it found; the order
//! in [`judge`] is the order of gravity, and the order of the report.

use crate::baseline::Baseline;
use crate::blame;
use crate::bound::Bound;
use crate::diagnosis::{self, Evidence};
use crate::finding::{Class, Code, Finding, Level};
use crate::limits::{Limits, Source};
use crate::protocol::{Status, Verdict};
use crate::record::{Metrics, Record, SpaceRecord};
use crate::size::{Size, both};
use crate::space::Space;

mod ended;
mod fit;
mod growth;
mod regression;
mod unmeasured;
mod unstable;

pub use ended::{gist, says_out_of_memory};
pub use growth::TREND_CONFIDENCE;
pub use unmeasured::unwritten;

/// Judges one run of one test. `level` says what is done about bookkeeping.
pub fn judge(
    record: &Record,
    baseline: &Baseline,
    limits: &Limits,
    level: impl Fn(Code) -> Level,
) -> Verdict {
    let ended = ended::ended(record, limits);
    let returned = ended.is_none();
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(ended);
    findings.extend(unmeasured::blind(record));
    if returned {
        findings.extend(unmeasured::incomplete(record, limits));
    }
    for (&space, measured) in judged(record) {
        if !growth::is_overhead(record, space, limits) {
            findings.extend(growth::leak(record, space, measured, limits));
            if returned {
                findings.extend(growth::undecided(space, measured, limits));
            }
        }
        let of_pool = growth::of_pool(space, measured, limits.max_reserved_growth.value);
        findings.extend(of_pool.map(|found| match record.driver.simulated {
            true => growth::estimated(found),
            false => found,
        }));
        findings.extend(peak(record, space, &measured.metrics, limits));
        findings.extend(fit::peak(record, space, &measured.metrics, limits));
        // A body that did not reach its end has not freed what it would have.
        if returned && !is_overhead(space, |space| retained_in(record, space, limits)) {
            findings.extend(retained(record, space, measured, limits));
        }
        if space != Space::HostSmall {
            findings.extend(allocations(record, space, measured, limits));
        }
    }
    if returned {
        findings.extend(regression::against(record, baseline, limits));
        unstable::settle(record, baseline, limits, &mut findings);
    }
    // What limits the names of places is said where places are named.
    if let Some(hint) = record.attribution.as_ref().and_then(|found| found.hint.as_ref()) {
        for finding in findings.iter_mut().filter(|finding| !finding.sites.is_empty()) {
            finding.hint.get_or_insert_with(|| hint.clone());
        }
    }
    conclude(findings, level)
}

/// Whether figures with these findings may wait to become the baseline: not those of
/// a run that broke a limit or did not come to its end; those that only differ from
/// the baseline may.
pub fn is_worth_keeping(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| {
        matches!(
            finding.code,
            Code::PeakRegression | Code::AllocationsRegression | Code::GrowthRegression
        ) || finding.code.row().class == Class::Bookkeeping
    })
}

/// Sorts findings into a verdict: leaves out what is allowed, collects what is
/// denied, and settles the status. What was not measured has nothing to accept:
/// bookkeeping is left out beside an instrument that failed.
pub fn conclude(findings: Vec<Finding>, level: impl Fn(Code) -> Level) -> Verdict {
    let is_of = |finding: &Finding, class| finding.code.row().class == class;
    let blind = findings.iter().any(|finding| is_of(finding, Class::Instrument));
    let findings: Vec<Finding> = findings
        .into_iter()
        .filter(|finding| !blind || !is_of(finding, Class::Bookkeeping))
        .filter(|finding| level(finding.code) != Level::Allow)
        .collect();
    let of_class = |class: Class| {
        findings.iter().map(|finding| finding.code).filter(move |code| code.row().class == class)
    };
    let mut denied: Vec<Code> =
        of_class(Class::Bookkeeping).filter(|&code| level(code) == Level::Deny).collect();
    denied.sort();
    denied.dedup();
    let status = if of_class(Class::Instrument).next().is_some() {
        Status::NotMeasured
    } else if of_class(Class::Measured).next().is_some() {
        Status::Failed
    } else if !denied.is_empty() {
        Status::NeedsReview
    } else {
        Status::Passed
    };
    Verdict { status, findings, denied }
}

fn judged(record: &Record) -> impl Iterator<Item = (&Space, &SpaceRecord)> {
    record.judged.iter().filter_map(|space| record.spaces.get_key_value(space))
}

fn peak(record: &Record, space: Space, metrics: &Metrics, limits: &Limits) -> Option<Finding> {
    // A share of another test's peak is judged where both are known.
    let Some(Bound::Bytes(Size(limit))) = limits.max_peak.value else { return None };
    (metrics.peak_allocated > limit).then(|| Finding {
        space: Some(space),
        figure: Some(metrics.peak_allocated),
        limit: Some(limit),
        sites: blame::at_peak(record, space),
        ..Finding::new(
            Code::PeakLimit,
            format!(
                "the peak in {space} is {}, at most {} allowed",
                both(metrics.peak_allocated),
                both(limit)
            ),
        )
    })
}

/// How many times smaller than the tensors that are kept the small blocks on the host are
/// that come with them: their shapes, reference counts and lists.
const OVERHEAD: u64 = 16;

/// Whether `space` is that of small blocks, and they only come with the larger ones of
/// another finding. `figure` is that of a space if it is above its limit, else 0.
fn is_overhead(space: Space, figure: impl Fn(Space) -> u64) -> bool {
    space == Space::HostSmall && figure(Space::Host) / OVERHEAD >= figure(space).max(1)
}

/// The retained bytes of a space if they are above their limit, else 0.
fn retained_in(record: &Record, space: Space, limits: &Limits) -> u64 {
    let of = |measured| retained_figure(measured, limits).0;
    let figure = record.spaces.get(&space).map_or(0, of);
    if figure > limits.max_retained.value { figure } else { 0 }
}

/// The retained bytes that are judged, and whether they are those of a second round.
fn retained_figure(measured: &SpaceRecord, limits: &Limits) -> (u64, bool) {
    // A limit that somebody set is about all that is live. Without one, memory that is
    // allocated once in a process (a lazy static, a thread-local) is not retained.
    let added = measured.retained_again.filter(|_| limits.max_retained.source == Source::BuiltIn);
    (added.unwrap_or(measured.metrics.retained), added.is_some())
}

fn retained(
    record: &Record,
    space: Space,
    measured: &SpaceRecord,
    limits: &Limits,
) -> Option<Finding> {
    let limit = limits.max_retained.value;
    let (figure, is_added) = retained_figure(measured, limits);
    let again = if is_added { ", and were again after a second round of it" } else { "" };
    (figure > limit).then(|| Finding {
        space: Some(space),
        figure: Some(figure),
        limit: Some(limit),
        sites: blame::retained(record, space),
        cause: Evidence::of(record, space)
            .and_then(|evidence| diagnosis::diagnose_retained(&evidence)),
        ..Finding::new(
            Code::Retained,
            format!(
                "{} are live in {space} after the body returned{again}, at most {} allowed",
                both(figure),
                both(limit)
            ),
        )
    })
}

fn allocations(
    record: &Record,
    space: Space,
    measured: &SpaceRecord,
    limits: &Limits,
) -> Option<Finding> {
    let limit = limits.max_allocations.value?;
    let most = measured.allocations.iter().copied().max()?;
    (most > limit).then(|| Finding {
        space: Some(space),
        figure: Some(most),
        limit: Some(limit),
        sites: blame::allocating(record, space),
        ..Finding::new(
            Code::AllocationsLimit,
            format!("an iteration makes {most} allocations in {space}, at most {limit} allowed"),
        )
    })
}

#[cfg(test)]
pub(crate) mod tests;
