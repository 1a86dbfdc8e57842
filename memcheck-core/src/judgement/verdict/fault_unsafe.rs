//! `fault-unsafe`: a refused allocation that left memory behind, crashed the body or stopped it. A
//! sweep that refused nothing is `not-measured`.

use super::ended::gist;
use crate::judgement::blame;
use crate::judgement::finding::{Code, Finding, Site};
use crate::measurement::fault_sweep::{Effect, SweepResult, UnsafeAllocation};
use crate::measurement::record::Record;
use crate::size::{both, counted, exact};
use crate::space::Space;

/// The most findings of a sweep. Further lines are counted in the last one.
const MOST: usize = 8;

/// Failures that one line causes in one way are one finding.
pub(super) fn judge(record: &Record) -> Vec<Finding> {
    let Some(sweep) = &record.fault_sweep else { return Vec::new() };
    let mut findings: Vec<Finding> = Vec::new();
    if sweep.refused == 0
        && let Some(why) = &sweep.ended
    {
        let message = format!("the fault sweep refused no allocation: {why}");
        findings.push(Finding::new(Code::NotMeasured, message));
    }
    let mut groups: Vec<(Key, Vec<&UnsafeAllocation>)> = Vec::new();
    for failure in &sweep.failures {
        let key = key(failure);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, failures)) => failures.push(failure),
            None => groups.push((key, vec![failure])),
        }
    }
    let hidden = groups.len().saturating_sub(MOST);
    groups.truncate(MOST);
    findings.extend(groups.iter().map(|(_, failures)| finding(sweep, failures)));
    if hidden > 0
        && let Some(last) = findings.last_mut()
    {
        let lines = counted(hidden as u64, "further line", "further lines");
        last.message.push_str(&format!("; {lines} of refused allocations had an effect too"));
    }
    findings
}

/// The kind of the effect, its space, and the line of the refused allocation.
type Key = (&'static str, Option<Space>, Option<String>);

fn key(failure: &UnsafeAllocation) -> Key {
    let (kind, space) = match &failure.effect {
        Effect::Left { space, .. } => ("left", Some(*space)),
        Effect::Panicked { .. } => ("panicked", None),
        Effect::Hung { .. } => ("hung", None),
        Effect::Ended => ("ended", None),
        Effect::Differs { space, .. } => ("differs", Some(*space)),
        Effect::NextFailed { .. } => ("next-failed", None),
    };
    (kind, space, place(failure))
}

fn place(failure: &UnsafeAllocation) -> Option<String> {
    blame::site(&failure.calls.stack(), "").place()
}

/// The failures must have one key.
fn finding(sweep: &SweepResult, failures: &[&UnsafeAllocation]) -> Finding {
    let worst = |failure: &&&UnsafeAllocation| match &failure.effect {
        Effect::Left { bytes, .. } => (*bytes, std::cmp::Reverse(failure.number)),
        _ => (0, std::cmp::Reverse(failure.number)),
    };
    let Some(failure) = failures.iter().max_by_key(worst) else {
        return Finding::new(Code::FaultUnsafe, "a refused allocation had an effect");
    };
    let at = place(failure).map(|place| format!(" at {place}")).unwrap_or_default();
    let refusal = format!(
        "allocation {} of {}{at} ({})",
        exact(failure.number),
        exact(sweep.allocations),
        both(failure.requested)
    );
    let (space, figure) = match &failure.effect {
        Effect::Left { space, bytes, .. } => (Some(*space), Some(*bytes)),
        Effect::Differs { space, after, .. } => (Some(*space), Some(*after)),
        _ => (None, None),
    };
    let others = failures.len() - 1;
    let also = match others {
        0 => String::new(),
        _ => {
            let others = counted(others as u64, "other refusal", "other refusals");
            format!("; {others} on this line had the same effect")
        }
    };
    Finding {
        space,
        figure,
        limit: matches!(failure.effect, Effect::Left { .. }).then_some(0),
        sites: sites(failure),
        ..Finding::new(Code::FaultUnsafe, effect(&failure.effect, &refusal) + &also)
    }
    .hint(remedy(&failure.effect))
}

fn effect(effect: &Effect, refusal: &str) -> String {
    match effect {
        Effect::Left { space, bytes, .. } => {
            format!("{} stay in {space} after {refusal} was refused", both(*bytes))
        }
        Effect::Panicked { message } => {
            format!("the body panicked after {refusal} was refused: {}", gist(message))
        }
        Effect::Hung { seconds } => {
            let seconds = counted(*seconds, "second", "seconds");
            format!("the body had not returned {seconds} after {refusal} was refused")
        }
        Effect::Ended => format!(
            "the test process ended after {refusal} was refused, by a signal, an abort or an exit"
        ),
        Effect::Differs { space, figure, before, after } => {
            let show = |value| if figure == "allocations" { exact(value) } else { both(value) };
            format!(
                "the iteration after {refusal} was refused differs from those before: its \
                 `{figure}` in {space} is {} instead of {}",
                show(*after),
                show(*before)
            )
        }
        Effect::NextFailed { error } => format!(
            "the iteration after {refusal} was refused failed, although it was not refused memory: \
             {}",
            gist(error)
        ),
    }
}

fn remedy(effect: &Effect) -> &'static str {
    match effect {
        Effect::Left { .. } => {
            "free the memory on the error path too: let its owner be dropped by `?`, and store a \
             value only after the last step that can fail"
        }
        Effect::Panicked { .. } => {
            "return the error with `?` instead of `unwrap` or `expect`; an `unwrap` in the test's \
             own file counts as an error"
        }
        Effect::Hung { .. } => {
            "look for a loop that tries again without a limit, and for a thread \
                                that waits for a result that is never sent"
        }
        Effect::Ended => {
            "`cargo memcheck --fault-sweep --no-capture TEST` shows the output of the process, which \
             may contain the reason; a destructor must not panic while another panic unwinds"
        }
        Effect::Differs { .. } | Effect::NextFailed { .. } => {
            "change state that outlives the iteration only after the last step that can fail, or \
             reset it when the iteration begins"
        }
    }
}

/// The line of the refused allocation, then the blocks that were left.
fn sites(failure: &UnsafeAllocation) -> Vec<Site> {
    let requested = Site {
        bytes: failure.requested,
        count: 1,
        note: Some("requested and refused".to_owned()),
        ..blame::site(&failure.calls.stack(), "")
    };
    let left = match &failure.effect {
        Effect::Left { blocks, .. } => blocks.as_slice(),
        _ => &[],
    };
    let left = left.iter().map(|left| Site {
        bytes: left.bytes,
        count: left.count,
        note: Some("left behind".to_owned()),
        ..blame::site(&left.calls.stack(), "")
    });
    std::iter::once(requested).chain(left).filter(|site| !site.stack.is_empty()).collect()
}
