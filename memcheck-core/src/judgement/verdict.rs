//! The verdict: a pure function of a record, its baseline and its limits. [`judge`] calls one
//! function for each rule, in the order of severity, which is that of the report.

use crate::bound::Bound;
use crate::judgement::baseline::Baseline;
use crate::judgement::blame;
use crate::judgement::diagnosis::{self, Evidence};
use crate::judgement::finding::{Class, Code, Finding, Level};
use crate::judgement::headline::headline;
use crate::limits::{Limits, Source};

use crate::measurement::record::{Metrics, Record, SpaceRecord};
use crate::size::{Size, both};
use crate::space::Space;
pub use status::{Status, Verdict};

mod counter;
mod ended;
mod fault_unsafe;
mod fit;
mod growth;
mod kept;
mod phase;
mod regression;
mod soak;
mod status;
mod traffic;
mod unmeasured;
mod unstable;

pub use ended::{gist, says_out_of_memory};
pub use growth::TREND_CONFIDENCE;
pub use unmeasured::unwritten;

/// Judges one run of one test. `level` returns the configured level of a code.
pub fn judge(
    record: &Record,
    baseline: &Baseline,
    limits: &Limits,
    level: impl Fn(Code) -> Level,
) -> Verdict {
    let ended = ended::judge_outcome(record, limits);
    let returned = ended.is_none();
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(ended);
    findings.extend(unmeasured::judge(record, limits, returned));
    if returned {
        findings.extend(phase::missing(record));
    }
    for (&space, measured) in judged(record) {
        if matches!(space, Space::Counter(_)) {
            findings.extend(counter::growth(record, space, measured, limits));
        }
        findings.extend(growth::judge(record, space, measured, limits, returned));
        if space == Space::Host {
            findings.extend(host_peak(record, &measured.metrics, limits));
        }
        if record.has_own_limits(space) {
            continue;
        }
        findings.extend(growth::of_pool(record, space, measured, limits));
        findings.extend(kept::judge(record, space, measured, limits));
        findings.extend(peak(record, space, &measured.metrics, limits));
        findings.extend(phase::peaks(record, space, measured));
        findings.extend(fit::peak(record, space, &measured.metrics, limits));
        // A body that failed has not freed its memory, so its retained bytes mean nothing.
        if returned && !is_overhead(space, |space| retained_in(record, space, limits)) {
            findings.extend(retained(record, space, measured, limits));
        }
        if space != Space::HostSmall {
            findings.extend(traffic::judge(record, space, measured, limits));
        }
    }
    findings.extend(fit::unified(record, limits, &findings));
    findings.extend(fault_unsafe::judge(record));
    findings.extend(soak::judge(record));
    if returned {
        findings.extend(regression::compare_with_baseline(record, baseline, limits));
        // Last, because it replaces findings of the rules before it.
        unstable::replace_unstable(record, baseline, limits, &mut findings);
    }
    // If names are incomplete, each finding with places gets the reason as its hint.
    if let Some(hint) = record.attribution.as_ref().and_then(|found| found.hint.as_ref()) {
        for finding in findings.iter_mut().filter(|finding| !finding.sites.is_empty()) {
            finding.hint.get_or_insert_with(|| hint.clone());
        }
    }
    kept::name_option(&mut findings, limits);
    conclude(findings, level)
}

/// True if the figures can become the baseline: the run ended and broke no limit.
pub fn is_worth_keeping(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| {
        matches!(
            finding.code,
            Code::PeakRegression | Code::AllocationsRegression | Code::GrowthRegression
        ) || finding.code.row().class == Class::Bookkeeping
    })
}

/// Drops the allowed findings, finds the headlines of the others, collects the denied ones and decides the status. If the instrument
/// failed, bookkeeping is dropped, because there are no figures to accept.
pub fn conclude(findings: Vec<Finding>, level: impl Fn(Code) -> Level) -> Verdict {
    let is_of = |finding: &Finding, class| finding.code.row().class == class;
    let blind = findings.iter().any(|finding| is_of(finding, Class::Instrument));
    let findings: Vec<Finding> = findings
        .into_iter()
        .filter(|finding| !blind || !is_of(finding, Class::Bookkeeping))
        .filter(|finding| level(finding.code) != Level::Allow)
        .map(|finding| {
            // A stored finding has it already, but not the frames that it depends on.
            let keeps_at = finding.keeps_at.clone().or_else(|| headline(&finding));
            let kept_through = finding.kept_through.filter(|line| Some(line) != keeps_at.as_ref());
            Finding { keeps_at, kept_through, ..finding }
        })
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
    // `runs::relations` judges a limit relative to another test, because it has the figures of both.
    let Some(Bound::Bytes(Size(limit))) = limits.max_peak.value else { return None };
    (metrics.peak_allocated > limit).then(|| Finding {
        space: Some(space),
        figure: Some(metrics.peak_allocated),
        limit: Some(limit),
        sites: blame::at_peak(record, space),
        ..Finding::new(
            Code::PeakLimit,
            format!(
                "the peak in {space} is {} (limit {})",
                both(metrics.peak_allocated),
                both(limit)
            ),
        )
    })
}

fn host_peak(record: &Record, metrics: &Metrics, limits: &Limits) -> Option<Finding> {
    let limit = limits.max_host_peak.value?;
    let peak = metrics.peak_allocated;
    (peak > limit).then(|| Finding {
        space: Some(Space::Host),
        figure: Some(peak),
        limit: Some(limit),
        sites: blame::at_peak(record, Space::Host),
        ..Finding::new(
            Code::PeakLimit,
            format!(
                "the peak in host is {} (limit {} of `max_host_peak`)",
                both(peak),
                both(limit)
            ),
        )
    })
}

/// Small host blocks are overhead of tensors if those have at least this many times their bytes.
const OVERHEAD: u64 = 2;

/// `figure` must return the figure of a space if it is above its limit, else 0.
fn is_overhead(space: Space, figure: impl Fn(Space) -> u64) -> bool {
    space == Space::HostSmall && figure(Space::Host) / OVERHEAD >= figure(space).max(1)
}

fn retained_in(record: &Record, space: Space, limits: &Limits) -> u64 {
    let judged_figure = |measured| retained_figure(measured, limits).0;
    let figure = record.spaces.get(&space).map_or(0, judged_figure);
    if figure > limits.max_retained.value { figure } else { 0 }
}

/// The retained bytes that are judged, and true if they are those of a further round.
fn retained_figure(measured: &SpaceRecord, limits: &Limits) -> (u64, bool) {
    // A limit that the user set covers all live bytes. The built-in limit does not cover memory
    // that is allocated once in a process, such as a lazy static or a thread-local.
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
    let again = match measured.rounds.filter(|_| is_added) {
        Some(rounds) => format!(", and again after each of {rounds} further rounds"),
        None if is_added => ", and again after a second round".to_owned(),
        None => String::new(),
    };
    // The call sites are those of the first round, so that their sum is larger by this.
    let once = match measured.metrics.retained.saturating_sub(figure) {
        0 => String::new(),
        once => format!("; the first round left {} more", both(once)),
    };
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
                "{} are live in {space} after the body returned{again} (limit {}){once}",
                both(figure),
                both(limit)
            ),
        )
    })
}

#[cfg(test)]
pub(crate) mod tests;
