//! The rise of a figure from its baseline, in words.

use memcheck_core::judgement::finding::Finding;
use memcheck_core::presentation::sizes;
use memcheck_core::size::Size;

/// `NAME rose by 64.0 KiB, from …`. The message of a figure of a phase names the phase.
pub(super) fn risen(finding: &Finding, name: &str) -> Option<String> {
    let (then, now) = (finding.baseline?, finding.figure?);
    if finding.phase.is_some() || now < then {
        return None;
    }
    let (more, [then, now]) = (Size(now - then), sizes::apart(then, now));
    Some(format!("{name} rose by {more}, from {then} to {now}"))
}
