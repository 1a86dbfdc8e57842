//! Growth from iteration to iteration: `leak` for blocks, `growth-limit` for totals only.

use crate::growth::lifetimes::Open;
use crate::growth::survivors::{self, Group, Growth, Pattern, Reading};
use crate::judgement::blame;
use crate::judgement::diagnosis::{self, Evidence};
use crate::judgement::finding::{Code, Finding};
use crate::limits::Limits;
use crate::measurement::record::{Record, SpaceRecord};
use crate::size::{blocks, both, counted, exact};
use crate::space::Space;

/// The least confidence with which a series of totals counts as growing.
pub const TREND_CONFIDENCE: f64 = 0.99;

/// Judges the growth of a space; that of a counter is judged by its level.
pub(super) fn judge(
    record: &Record,
    space: Space,
    measured: &SpaceRecord,
    limits: &Limits,
    returned: bool,
) -> Vec<Finding> {
    let is_overhead = is_overhead(record, space, limits);
    let found = match space {
        Space::Process => resident(measured, limits),
        Space::Counter(_) => None,
        _ if is_overhead => None,
        _ => leak(record, space, measured, limits),
    };
    let open = (returned && !is_overhead).then(|| undecided(record, space, measured, limits));
    found.into_iter().chain(open.flatten()).collect()
}

/// Judges the growth of the driver's pool, which is an estimate on a simulated device.
pub(super) fn of_pool(
    record: &Record,
    space: Space,
    measured: &SpaceRecord,
    limits: &Limits,
) -> Option<Finding> {
    let found = pool_growth(space, measured, limits.max_reserved_growth.value)?;
    Some(if record.driver.simulated { mark_estimate(found) } else { found })
}

/// True for small blocks on the host that are the overhead of tensors that leak.
pub(super) fn is_overhead(record: &Record, space: Space, limits: &Limits) -> bool {
    super::is_overhead(space, |space| {
        let growth = record.spaces.get(&space).map_or(0, |measured| measured.metrics.growth);
        if growth > limit_of(record, space, limits) { growth } else { 0 }
    })
}

fn limit_of(record: &Record, space: Space, limits: &Limits) -> u64 {
    record.max_growth_of(space, limits).unwrap_or(u64::MAX)
}

fn leak(record: &Record, space: Space, measured: &SpaceRecord, limits: &Limits) -> Option<Finding> {
    let limit = limit_of(record, space, limits);
    let evidence = Evidence::of(record, space)?;
    let growth = evidence.bytes_per_iteration;
    if growth <= limit {
        return None;
    }
    let sites = blame::growing(&evidence);
    let groups: Vec<&Group> = evidence
        .growing()
        .map(|suspect| &suspect.survivors.group)
        .chain(evidence.unplaced.iter().copied())
        .collect();
    let count: u64 = groups.iter().map(|group| group.count()).sum();
    let replaced = groups
        .iter()
        .all(|group| matches!(group.reading.pattern, Pattern::Enlarged | Pattern::Amortized));
    let blocks_text = match replaced {
        true => "buffers are replaced by larger ones".to_owned(),
        false => still_live(count, groups.first().copied()),
    };
    let small_blocks = match record.spaces.get(&Space::HostSmall) {
        Some(small)
            if space == Space::Host
                && small.metrics.growth > 0
                && is_overhead(record, Space::HostSmall, limits) =>
        {
            format!(", and blocks below 1 KiB by {}", both(small.metrics.growth))
        }
        _ => String::new(),
    };
    let (least, longer_run) = match measured.growth {
        Growth::Found { whole, iterations, .. } => {
            let (last, ended) = (exact(iterations.into()), cut_short(record));
            let still = format!("memory still grows in iteration {last}{ended}");
            let confirmed = match (evidence.is_longer, ended.is_empty()) {
                (true, _) => Some(format!("a longer run confirms the growth: {still}")),
                (false, false) => Some(still),
                // It is the last of the measured ones.
                (false, true) => None,
            };
            (if whole { "" } else { "at least " }, confirmed)
        }
        _ => ("", None),
    };
    // The rules know the habits of programs that use candle.
    let cause = (space != Space::CHeap).then(|| diagnosis::diagnose(&evidence)).flatten();
    let kept_through = cause.as_ref().and_then(|cause| match cause.is_graph() {
        true => blame::kept_through(record, space),
        false => evidence.list().filter(|_| cause.is_general()),
    });
    let cause = match &kept_through {
        Some(at) => cause.map(|cause| cause.kept_at(at)),
        None => cause,
    };
    let mut finding = Finding {
        space: Some(space),
        bytes_per_iteration: Some(growth),
        limit: Some(limit),
        sites,
        kept_through,
        cause,
        longer_run,
        ..Finding::new(
            Code::Leak,
            format!(
                "{space} grows by {least}{} per iteration{small_blocks}{} (limit {}): {blocks_text}",
                both(growth),
                accelerates(&groups),
                both(limit)
            ),
        )
    };
    if measured.failed_frees > 0 {
        finding = finding.hint(refused_frees(measured.failed_frees));
    }
    Some(finding)
}

/// By how much the growth of all groups accelerates; empty if it does not, or not alike.
fn accelerates(groups: &[&Group]) -> String {
    let readings = groups.iter().map(|group| group.reading);
    let growing = readings.filter(|reading| reading.pattern == Pattern::Growing);
    let all = growing.reduce(Reading::merge);
    let faster = all.and_then(|reading| reading.acceleration());
    faster.map(|faster| format!(" on average, and {faster}")).unwrap_or_default()
}

/// The reason why the iterations ended before growth was decided.
fn cut_short(record: &Record) -> String {
    let reason = ended(record);
    reason.map(|reason| format!(", the last, because {reason}")).unwrap_or_default()
}

/// The beginning of the reason if the body ended a run, so that no option makes it longer.
const ERROR_OF_BODY: &str = "the body";

fn ended(record: &Record) -> Option<&str> {
    let undecided = record.followed.as_ref().filter(|followed| !followed.decided)?;
    undecided.ended.as_deref()
}

/// The hint for frees that the driver refused.
pub(super) fn refused_frees(number: u64) -> String {
    format!(
        "the driver refused {}: was a tensor dropped on a thread without a CUDA context?",
        counted(number, "free", "frees")
    )
}

/// Judges the resident memory of the process, which has no blocks.
fn resident(measured: &SpaceRecord, limits: &Limits) -> Option<Finding> {
    let limit = limits.max_growth_of(Space::Process).unwrap_or(u64::MAX);
    let growth = measured.metrics.growth;
    let Growth::Found { iterations, .. } = measured.growth else { return None };
    if growth <= limit {
        return None;
    }
    let finding = Finding {
        space: Some(Space::Process),
        bytes_per_iteration: Some(growth),
        limit: Some(limit),
        ..Finding::new(
            Code::GrowthLimit,
            format!(
                "resident memory and swap of the process grow by {} per iteration (limit {}): \
                 they rose undiminished over {iterations} iterations",
                both(growth),
                both(limit)
            ),
        )
    };
    Some(finding.hint(
        "compare with the growth of `host`, and set `max_c_growth` to count the C heap: the rest \
         is memory that libraries map, or that the allocator does not return",
    ))
}

/// A finding only if the mean rate would exceed the limit of the space.
fn undecided(
    record: &Record,
    space: Space,
    measured: &SpaceRecord,
    limits: &Limits,
) -> Option<Finding> {
    let limit = limit_of(record, space, limits);
    let (open, bytes, iterations) = match measured.growth {
        Growth::Undecided { open, bytes, iterations } => (open, bytes, iterations),
        Growth::Unknown => {
            let message = format!(
                "it is undecided whether {space} grows: the longer run that decides it wrote no \
                 complete record"
            );
            return Some(Finding {
                space: Some(space),
                limit: Some(limit),
                ..Finding::new(Code::Undecided, message)
            });
        }
        Growth::Quiet { .. } | Growth::Found { .. } => return None,
    };
    let measured_iterations = iterations.saturating_sub(limits.warmup.value).max(1);
    if bytes / u64::from(measured_iterations) <= limit {
        return None;
    }
    let course = match open {
        Open::Slows => "they rose more and more slowly",
        Open::Moves => "they rose and fell",
        Open::GoesOn => "they kept rising",
        Open::Rare => "they rose in only one or two iterations",
    };
    let reason = ended(record);
    let hint = match reason {
        Some(reason) if reason.starts_with(ERROR_OF_BODY) => {
            "let the body run for more iterations, or bound the memory that the test keeps"
        }
        _ => "raise `max_iterations` or `evidence`, or bound the memory that the test keeps",
    };
    let because = reason.map(|reason| format!(", because {reason}")).unwrap_or_default();
    let evidence = Evidence::of(record, space);
    let finding = Finding {
        space: Some(space),
        figure: Some(bytes),
        limit: Some(limit),
        sites: evidence.as_ref().map(blame::staying).unwrap_or_default(),
        ..Finding::new(
            Code::Undecided,
            format!(
                "{} in {space} may be growth: {course} for {iterations} iterations, and the run \
                 ended before this was decided{because}",
                both(bytes)
            ),
        )
    };
    Some(finding.hint(hint))
}

/// Judges the reserved bytes of the pool or, without a pool, the used bytes that NVML reports.
pub(super) fn pool_growth(
    space: Space,
    measured: &SpaceRecord,
    limit: Option<u64>,
) -> Option<Finding> {
    let limit = limit?;
    let (what, series) = reserved_series(measured);
    let trend = survivors::trend(series)?;
    let slope = trend.slope.max(0.0).round() as u64;
    (slope > limit && trend.confidence >= TREND_CONFIDENCE).then(|| Finding {
        space: Some(space),
        bytes_per_iteration: Some(slope),
        limit: Some(limit),
        ..Finding::new(
            Code::GrowthLimit,
            format!(
                "{what} of {space} grow by {} per iteration (Theil–Sen; Mann–Kendall confidence \
                 {} %; limit {})",
                both(slope),
                percent(trend.confidence),
                both(limit)
            ),
        )
    })
}

/// `20 blocks from the 10 measured iterations are still live`, with the iterations that the series of a
/// group stand for.
fn still_live(count: u64, group: Option<&Group>) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    let iterations = group.map_or(0, Group::iterations);
    let window = match group.and_then(|group| group.skipped) {
        Some(skipped) => {
            let (first, last) = (skipped.saturating_add(1), skipped.saturating_add(iterations));
            format!("measured iterations {} to {}", exact(first), exact(last))
        }
        None => {
            format!("the {}", counted(iterations, "measured iteration", "measured iterations"))
        }
    };
    format!("{} from {window} {verb} still live", blocks(count))
}

/// The pool and NVML figures of a simulated device are estimates.
fn mark_estimate(finding: Finding) -> Finding {
    let message = format!("{}; on a simulated device this is an estimate", finding.message);
    Finding { message, ..finding }
}

pub(super) fn reserved_series(measured: &SpaceRecord) -> (&'static str, &[u64]) {
    if measured.reserved.is_empty() {
        ("the used bytes (NVML)", &measured.device_used)
    } else {
        ("the pool's reserved bytes", &measured.reserved)
    }
}

/// With one decimal, rounded down and at most 99.9, because evidence is not a proof.
fn percent(confidence: f64) -> String {
    format!("{:.1}", ((confidence * 1000.0).floor() / 10.0).min(99.9))
}
