//! `not-measured`: the reasons why a run proves nothing about its test.

use crate::judgement::finding::{Code, Finding};
use crate::limits::{Limits, Source};
use crate::measurement::record::{Outcome, Record};
use crate::size::counted;
use crate::space::{COUNTED_GPUS, Space};
use crate::values::Contents;

/// The reasons why a run proves nothing, of a body that `returned` or did not.
pub(super) fn judge(record: &Record, limits: &Limits, returned: bool) -> Vec<Finding> {
    let mut findings = instrument_failures(record);
    findings.extend(unknown_values(record, limits));
    if returned {
        findings.extend(incomplete(record, limits));
    }
    findings
}

fn instrument_failures(record: &Record) -> Vec<Finding> {
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
                    format!("the probes did not see the canary allocation of this run in {space}"),
                )
            };
            findings.push(finding.hint(match space {
                Space::CHeap => {
                    "does the program link a `malloc` of its own, such as jemalloc? Remove it, or \
                     `max_c_growth`. The C heap is counted on Linux with glibc"
                }
                Space::Process => "is /proc mounted? Mount it, or remove `max_rss_growth`",
                Space::Host | Space::HostSmall => {
                    "does the binary set its own #[global_allocator]? wrap it in \
                     `memcheck_runtime::Tracking<A>`"
                }
                _ => "the binary calls CUDA in a way that the probe does not intercept",
            }));
        }
    }
    findings.extend(lost_events(record));
    if !record.unsupported_calls.is_empty() {
        findings.push(
            Finding::new(
                Code::NotMeasured,
                format!(
                    "the simulated device does not support {}",
                    record.unsupported_calls.join(", ")
                ),
            )
            .hint(
                "leave the call out on `sim`, or measure the test with `--device cuda`: \
             docs/reference/calls.md lists the calls that the simulated device refuses",
            ),
        );
    }
    findings
}

/// The body acted on values that are not real, and the user wants to know this.
fn unknown_values(record: &Record, limits: &Limits) -> Option<Finding> {
    let values = record.values.as_ref().filter(|_| limits.strict_values.value)?;
    let finding = Finding::new(Code::NotMeasured, values.sentence());
    Some(finding.hint(match limits.values.value {
        Contents::Never => "`values` is \"never\" and `strict_values` is set: remove one of them",
        Contents::Auto | Contents::AtMost(_) => {
            "raise `values`, use a smaller model, or remove `strict_values`: `cargo memcheck \
             explain unknown-values`"
        }
    }))
}

fn lost_events(record: &Record) -> Vec<Finding> {
    let of_unknown_gpus = record.events_of_unknown_gpus;
    let lost = |count, why| {
        let message = format!("{} lost, because {why}", counted(count, "event was", "events were"));
        (count > 0).then(|| Finding::new(Code::NotMeasured, message))
    };
    let full = lost(record.lost_events.saturating_sub(of_unknown_gpus), "the ledger was full");
    let unknown = lost(
        of_unknown_gpus,
        "the GPU is not one that memcheck counts, or the driver did not return its number",
    )
    .map(|finding| {
        finding.hint(format!(
            "memcheck counts {COUNTED_GPUS} GPUs: list fewer in CUDA_VISIBLE_DEVICES"
        ))
    });
    full.into_iter().chain(unknown).collect()
}

/// A body without all measured iterations, or a limit without a figure to judge.
fn incomplete(record: &Record, limits: &Limits) -> Option<Finding> {
    // An expected panic can end the iterations early.
    if matches!(record.outcome, Outcome::Panicked { .. }) {
        return None;
    }
    if !record.iterated {
        return never_iterated(limits);
    }
    let planned = limits.iterations.value;
    if record.iterations < planned {
        let finding = Finding::new(
            Code::NotMeasured,
            format!("the body completed {} of {planned} measured iterations", record.iterations),
        );
        return Some(
            finding.hint("return the error of `Trial::iterate`, or handle it in the iteration"),
        );
    }
    growth_of_one_iteration(limits).or_else(|| unread_pool(record, limits))
}

/// The bytes of one iteration may have been allocated only once, so they do not show growth. A flag
/// or a variable that sets one iteration is a quick look: a note is enough.
fn growth_of_one_iteration(limits: &Limits) -> Option<Finding> {
    let Limits {
        iterations,
        max_growth,
        max_reserved_growth,
        max_c_growth,
        max_rss_growth,
        max_host_growth,
        ..
    } = limits;
    let is_set_for_many_tests = matches!(iterations.source, Source::Flag | Source::Environment);
    if iterations.value > 1 || is_set_for_many_tests {
        return None;
    }
    let is_own = |source: &Source| matches!(source, Source::Attribute | Source::Override(_));
    let of_growth = [
        ("max_growth", &max_growth.source),
        ("max_reserved_growth", &max_reserved_growth.source),
        ("max_c_growth", &max_c_growth.source),
        ("max_rss_growth", &max_rss_growth.source),
        ("max_host_growth", &max_host_growth.source),
    ];
    let (name, _) = of_growth.into_iter().find(|(_, source)| is_own(source))?;
    let finding = Finding::new(
        Code::NotMeasured,
        format!("`{name}` limits growth, but one measured iteration cannot show growth"),
    );
    Some(finding.hint(
        "set `iterations` to 2 or more, or remove the limit: `max_retained` limits the memory \
         that outlives the body",
    ))
}

/// The finding about a pending file that could not be written. `which` names the kind of file.
pub fn unwritten(which: &str, error: impl std::fmt::Display) -> Finding {
    let message = format!("the pending {which} could not be written: {error}");
    Finding::new(Code::NotMeasured, message).hint("is the disk full, or the source tree read-only?")
}

/// Only the attribute's limits count: others apply to many tests, some without iterations.
fn never_iterated(limits: &Limits) -> Option<Finding> {
    let Limits {
        max_growth,
        max_kept,
        max_allocations,
        max_allocated,
        max_reserved_growth,
        max_c_growth,
        max_rss_growth,
        max_host_growth,
        ..
    } = limits;
    let set: Vec<&str> = [
        ("`max_growth`", &max_growth.source),
        ("`max_kept`", &max_kept.source),
        ("`max_allocations`", &max_allocations.source),
        ("`max_allocated`", &max_allocated.source),
        ("`max_reserved_growth`", &max_reserved_growth.source),
        ("`max_c_growth`", &max_c_growth.source),
        ("`max_rss_growth`", &max_rss_growth.source),
        ("`max_host_growth`", &max_host_growth.source),
    ]
    .into_iter()
    .filter(|(_, source)| **source == Source::Attribute)
    .map(|(name, _)| name)
    .collect();
    let names = match set.as_slice() {
        [] => return None,
        [only] => format!("{only} limits"),
        [first @ .., last] => format!("{} and {last} limit", first.join(", ")),
    };
    let finding = Finding::new(
        Code::NotMeasured,
        format!("{names} iterations, but the body never called `Trial::iterate`"),
    );
    Some(finding.hint("call `Trial::iterate`, or remove the limit"))
}

/// A limit on reserved bytes that neither the pool nor NVML gave after every iteration.
fn unread_pool(record: &Record, limits: &Limits) -> Option<Finding> {
    limits.max_reserved_growth.value?;
    let devices = || record.judged.iter().filter(|space| space.is_device());
    // Only the test's own device is watched, so the longest series counts.
    let read = devices()
        .filter_map(|space| record.spaces.get(space))
        .map(|measured| super::growth::reserved_series(measured).1.len())
        .max()?;
    (read < record.iterations as usize).then(|| {
        Finding::new(
            Code::NotMeasured,
            format!(
                "`max_reserved_growth` is set, but neither the pool nor NVML returned a figure \
                 after {} of {} iterations",
                record.iterations as usize - read,
                record.iterations
            ),
        )
        .hint(
            "the notes of the run state the reason; without this limit, only the blocks are judged",
        )
    })
}
