//! The verdict: a pure function of a record, its baseline and its limits.
//!
//! Every rule is a function of its own that returns what it found; the order
//! in [`judge`] is the order of gravity, and the order of the report.

use crate::baseline::{self, Baseline, Change, Figures, Holders};
use crate::blame;
use crate::diagnosis::{self, Evidence};
use crate::finding::{Class, Code, Finding, Level};
use crate::limits::{Limits, Source};
use crate::protocol::{Status, Verdict};
use crate::record::{Metrics, Outcome, Record, SpaceRecord};
use crate::size::both;
use crate::space::Space;
use crate::survivors;

mod fit;

/// Least growth of small host blocks, in bytes an iteration, that is told
/// apart from the noise of thread pools and lazily built tables.
pub const SMALL_FLOOR: u64 = 1 << 10;

/// Confidence from which a series of totals is said to grow.
pub const TREND_CONFIDENCE: f64 = 0.99;

/// Judges one run of one test. `level` says what is done about bookkeeping.
pub fn judge(
    record: &Record,
    baseline: &Baseline,
    limits: &Limits,
    level: impl Fn(Code) -> Level,
) -> Verdict {
    let ended = ended(record, limits);
    let returned = ended.is_none();
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(ended);
    findings.extend(not_measured(record));
    if returned {
        findings.extend(incomplete(record, limits));
    }
    for (&space, measured) in judged(record) {
        findings.extend(leak(record, space, measured, limits));
        findings.extend(pool_growth(space, measured, limits.max_reserved_growth.value));
        findings.extend(small_growth(space, measured, limits));
        findings.extend(peak(record, space, &measured.metrics, limits));
        findings.extend(fit::peak(space, &measured.metrics, limits));
        // A body that did not reach its end has not freed what it would have.
        if returned {
            findings.extend(retained(record, space, measured, limits));
        }
        findings.extend(allocations(space, measured, limits));
    }
    if returned {
        findings.extend(against_baseline(record, baseline, limits));
    }
    // What limits the names of places is said where places are named.
    if let Some(hint) = record.attribution.as_ref().and_then(|found| found.hint.as_ref()) {
        for finding in findings.iter_mut().filter(|finding| !finding.sites.is_empty()) {
            finding.hint.get_or_insert_with(|| hint.clone());
        }
    }
    conclude(findings, level)
}

/// Sorts findings into a verdict: leaves out what is allowed, collects what is
/// denied, and settles the status.
pub fn conclude(findings: Vec<Finding>, level: impl Fn(Code) -> Level) -> Verdict {
    let findings: Vec<Finding> =
        findings.into_iter().filter(|finding| level(finding.code) != Level::Allow).collect();
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

/// The text of an error without its backtrace: candle's and anyhow's `Debug`
/// append one where `RUST_BACKTRACE` is set. It stands in the test's output.
fn gist(text: &str) -> &str {
    let end =
        ["\n\nStack backtrace:", "\n   0: "].iter().filter_map(|start| text.find(start)).min();
    text[..end.unwrap_or(text.len())].trim_end()
}

/// `test-failed`, `does-not-fit` or `out-of-memory`, where the body did not end
/// as it should.
fn ended(record: &Record, limits: &Limits) -> Option<Finding> {
    let refused =
        record.spaces.iter().find_map(|(space, measured)| Some((*space, measured.refused?)));
    let (what, text) = match (&record.outcome, &record.should_panic) {
        (Outcome::Returned, None) => return None,
        (Outcome::Panicked { message }, Some(expected)) if message.contains(expected) => {
            return None;
        }
        (Outcome::Panicked { message }, Some(expected)) => {
            return Some(Finding::new(
                Code::TestFailed,
                format!(
                    "the panic says `{}`, which lacks the expected `{expected}`",
                    gist(message)
                ),
            ));
        }
        (Outcome::Returned, Some(_)) => {
            return Some(Finding::new(
                Code::TestFailed,
                "the test did not panic, and #[should_panic] says that it should",
            ));
        }
        (Outcome::Failed { error }, _) => ("returned an error", gist(error)),
        (Outcome::Panicked { message }, None) => ("panicked", gist(message)),
    };
    let ended = format!("the body {what}: {text}");
    if let Some(finding) = refused.and_then(|found| fit::refused(record, limits, found, &ended)) {
        return Some(finding);
    }
    let finding = match refused {
        Some((space, refusal)) => Finding {
            space: Some(space),
            figure: Some(refusal.live + refusal.requested),
            ..Finding::new(
                Code::OutOfMemory,
                format!(
                    "{space} had no room for {} more beside {} live; {ended}",
                    both(refusal.requested),
                    both(refusal.live),
                ),
            )
        }
        .hint("a smaller batch or a shorter sequence, or a larger card: `--device sim:CARD`"),
        None => Finding::new(Code::TestFailed, ended),
    };
    Some(finding)
}

fn not_measured(record: &Record) -> Vec<Finding> {
    let mut findings = Vec::new();
    if record.judged.is_empty() {
        findings.push(Finding::new(Code::NotMeasured, "no memory space was judged"));
    }
    for space in &record.judged {
        if record.spaces.get(space).is_none_or(|measured| !measured.armed) {
            let finding = Finding {
                space: Some(*space),
                ..Finding::new(
                    Code::NotMeasured,
                    format!("the canary allocation of this run was not seen in {space}"),
                )
            };
            findings.push(finding.hint(match space {
                Space::Host => {
                    "is another #[global_allocator] in place? wrap it: `memcheck_runtime::Tracking<A>`"
                }
                _ => "the binary calls CUDA in a way that the probe does not intercept",
            }));
        }
    }
    if record.lost_events > 0 {
        findings.push(Finding::new(
            Code::NotMeasured,
            format!("{} events were lost: the ledger was full", record.lost_events),
        ));
    }
    if !record.unsupported_calls.is_empty() {
        findings.push(Finding::new(
            Code::NotMeasured,
            format!("the simulated device does not know {}", record.unsupported_calls.join(", ")),
        ));
    }
    findings
}

/// A body that returned although its iterations did not come to their end, or
/// that never iterated although its growth is limited: nothing is proven.
fn incomplete(record: &Record, limits: &Limits) -> Option<Finding> {
    let planned = limits.iterations.value;
    let asked = !matches!(limits.max_growth.source, Source::BuiltIn | Source::Default);
    // A panic that is expected may end the iterations.
    let panicked = matches!(record.outcome, Outcome::Panicked { .. });
    if record.iterated && record.iterations < planned && !panicked {
        let finding = Finding::new(
            Code::NotMeasured,
            format!("{} of {planned} measured iterations came to their end", record.iterations),
        );
        return Some(
            finding.hint("return the error of `Trial::iterate`, or handle it in the iteration"),
        );
    }
    (!record.iterated && asked && !panicked).then(|| {
        Finding::new(
            Code::NotMeasured,
            "growth is limited, and the body never called `Trial::iterate`",
        )
        .hint("without iterations there is no growth to measure: drop `max_growth`, or iterate")
    })
}

fn leak(record: &Record, space: Space, measured: &SpaceRecord, limits: &Limits) -> Option<Finding> {
    let limit = limits.max_growth.value;
    let evidence = Evidence::of(record, space)?;
    let growth = evidence.bytes_per_iteration;
    if growth <= limit {
        return None;
    }
    let sites = blame::growing(&evidence);
    let how = match sites.first() {
        None => "a buffer is replaced by a larger one in every iteration".to_owned(),
        Some(top) => match top.block {
            Some(block) => format!("{} blocks of {} survive", top.count, both(block)),
            None => format!("{} blocks survive, {} in all", top.count, both(top.bytes)),
        },
    };
    let mut finding = Finding {
        space: Some(space),
        bytes_per_iteration: Some(growth),
        limit: Some(limit),
        sites,
        cause: diagnosis::diagnose(&evidence),
        ..Finding::new(
            Code::Leak,
            format!(
                "{space} grows by {} an iteration, at most {} allowed: {how}",
                both(growth),
                both(limit)
            ),
        )
    };
    if measured.failed_frees > 0 {
        finding = finding.hint(format!(
            "{} frees were refused by the driver: a tensor dropped on a thread without a context?",
            measured.failed_frees
        ));
    }
    Some(finding)
}

/// Growth of what is taken from the device, of which there are totals only:
/// what the pool has reserved, or where there is no pool what NVML says.
fn pool_growth(space: Space, measured: &SpaceRecord, limit: Option<u64>) -> Option<Finding> {
    let limit = limit?;
    let (what, series) = if measured.reserved.is_empty() {
        ("the bytes that NVML sees in use", &measured.device_used)
    } else {
        ("the pool's reserved bytes", &measured.reserved)
    };
    let trend = survivors::trend(series)?;
    // A slope is a median: it has a fraction of a byte at most.
    let slope = trend.slope.max(0.0).round() as u64;
    (slope > limit && trend.confidence >= TREND_CONFIDENCE).then(|| Finding {
        space: Some(space),
        bytes_per_iteration: Some(slope),
        limit: Some(limit),
        ..Finding::new(
            Code::GrowthLimit,
            format!(
                "{what} of {space} grow by {} an iteration (Theil–Sen; Mann–Kendall confidence \
                 {} %), at most {} allowed",
                both(slope),
                percent(trend.confidence),
                both(limit)
            ),
        )
    })
}

/// A confidence as a percentage with one decimal, rounded down: 100.0 is never
/// reached by evidence.
fn percent(confidence: f64) -> String {
    format!("{:.1}", ((confidence * 1000.0).floor() / 10.0).min(99.9))
}

/// Growth of the host's small blocks, of which there are totals only.
fn small_growth(space: Space, measured: &SpaceRecord, limits: &Limits) -> Option<Finding> {
    let growth = survivors::rising(&measured.small);
    let limit = limits.max_growth.value.max(SMALL_FLOOR);
    (growth > limit).then(|| Finding {
        space: Some(space),
        bytes_per_iteration: Some(growth),
        limit: Some(limits.max_growth.value),
        ..Finding::new(
            Code::GrowthLimit,
            format!(
                "blocks of less than 1 KiB in {space} grow by {} an iteration, at most {} allowed",
                both(growth),
                both(limits.max_growth.value)
            ),
        )
    })
}

fn peak(record: &Record, space: Space, metrics: &Metrics, limits: &Limits) -> Option<Finding> {
    let limit = limits.max_peak.value?;
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

fn retained(
    record: &Record,
    space: Space,
    measured: &SpaceRecord,
    limits: &Limits,
) -> Option<Finding> {
    let (figure, limit) = (measured.metrics.retained, limits.max_retained.value);
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
                "{} are live in {space} after the body returned, at most {} allowed",
                both(figure),
                both(limit)
            ),
        )
    })
}

fn allocations(space: Space, measured: &SpaceRecord, limits: &Limits) -> Option<Finding> {
    let limit = limits.max_allocations.value?;
    let most = measured.allocations.iter().copied().max()?;
    (most > limit).then(|| Finding {
        space: Some(space),
        figure: Some(most),
        limit: Some(limit),
        ..Finding::new(
            Code::AllocationsLimit,
            format!("an iteration makes {most} allocations in {space}, at most {limit} allowed"),
        )
    })
}

fn against_baseline(record: &Record, baseline: &Baseline, limits: &Limits) -> Vec<Finding> {
    let (figures, holders, facts) = match baseline {
        Baseline::Off => return Vec::new(),
        Baseline::Missing => {
            return vec![
                Finding::new(Code::MissingBaseline, "no baseline is kept for this test yet")
                    .hint("look at the figures, then `cargo memcheck accept`"),
            ];
        }
        Baseline::Corrupt(why) => {
            return vec![
                Finding::new(Code::CorruptBaseline, format!("the baseline cannot be used: {why}"))
                    .hint("restore the file from version control, or `cargo memcheck accept` the new figures"),
            ];
        }
        Baseline::Found { figures, holders, facts } => (figures, holders, facts),
    };
    let differing = baseline::differing_facts(facts, &record.facts);
    if !differing.is_empty() {
        return vec![
            Finding::new(
                Code::UncomparableBaseline,
                format!("the baseline was made under other conditions ({})", differing.join(", ")),
            )
            .hint("run under the same conditions, or `cargo memcheck accept` the new figures"),
        ];
    }
    let changes = baseline::changes(figures, &Figures::of(record), limits.tolerance.value);
    if let Some(unmatched) =
        changes.iter().find(|change| change.then.is_none() || change.now.is_none())
    {
        let which = if unmatched.then.is_none() { "lacks" } else { "alone has" };
        return vec![
            Finding::new(
                Code::UncomparableBaseline,
                format!("the baseline {which} `{}` of {}", unmatched.figure, unmatched.space),
            )
            .hint("`cargo memcheck accept` the new figures"),
        ];
    }
    let now = Holders::of(record);
    changes
        .iter()
        .filter_map(|change| changed(change, limits))
        .map(|finding| match (finding.code, finding.space) {
            (Code::PeakRegression, Some(space)) => Finding {
                grown: now.grown(holders, space),
                sites: blame::at_peak(record, space),
                ..finding
            },
            _ => finding,
        })
        .collect()
}

/// One figure out of tolerance: a regression, an improvement, or neither where
/// the figure is kept for information.
fn changed(change: &Change, limits: &Limits) -> Option<Finding> {
    let (then, now) = (change.then?, change.now?);
    let space = change.space;
    let count = change.figure == "allocations";
    let show = |value: u64| if count { value.to_string() } else { both(value) };
    let code = match change.figure.as_str() {
        _ if now < then => Code::Improved,
        "peak_allocated" => Code::PeakRegression,
        "allocations" => Code::AllocationsRegression,
        "growth" => Code::GrowthRegression,
        // What the body set up or allocated in all moves the peak or the count
        // where it matters; on its own it is no regression.
        _ => return None,
    };
    let tolerance = limits.tolerance.value;
    Some(
        Finding {
            space: Some(space),
            figure: Some(now),
            bytes_per_iteration: (change.figure == "growth").then_some(now),
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
            Code::Improved => "`cargo memcheck accept` keeps the lower figure",
            _ => "if this is meant, `cargo memcheck accept` makes it the new baseline",
        }),
    )
}

#[cfg(test)]
pub(crate) mod tests;
