//! The rise of a figure from its baseline: its size, and for a peak its cause and its remedy.

use memcheck_core::judgement::finding::{Finding, GrownHolder};
use memcheck_core::presentation::sizes;
use memcheck_core::size::Size;
use serde::Serialize;

/// The cause of a rise, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Rise {
    pub(super) cause: String,
    pub(super) remedy: &'static str,
}

/// `NAME rose by 64.0 KiB, from …`. The message of a figure of a phase names the phase.
pub(super) fn risen(finding: &Finding, name: &str) -> Option<String> {
    let (then, now) = (finding.baseline?, finding.figure?);
    if finding.phase.is_some() || now < then {
        return None;
    }
    let (more, [then, now]) = (Size(now - then), sizes::apart(then, now));
    Some(format!("{name} rose by {more}, from {then} to {now}"))
}

/// The cause and the remedy of a peak that rose, from the holders that are new or hold more. The
/// baseline has no call stacks, so no rule can name a habit of the program.
pub(super) fn of_peak(finding: &Finding) -> Option<Rise> {
    let rises = |holder: &&GrownHolder| holder.now > holder.then;
    let (new, larger): (Vec<_>, Vec<_>) =
        finding.grown.iter().filter(rises).partition(|holder| holder.is_new());
    let cause = match (new.len(), larger.len()) {
        (0, 0) => return None,
        (1, 0) => "this allocation is new, or its tensor lives longer than before".to_owned(),
        (new, 0) => {
            format!("these {new} allocations are new, or their tensors live longer than before")
        }
        (0, 1) => "this call site holds more memory at the peak than in the baseline".to_owned(),
        (new, larger) => format!(
            "these {} call sites hold more memory at the peak than in the baseline",
            new + larger
        ),
    };
    let remedy = match larger.as_slice() {
        [] => "remove the allocation, or drop its tensor before the peak",
        _ => "look for a larger shape, a wider dtype, or tensors that are dropped later",
    };
    Some(Rise { cause, remedy })
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::finding::Code;

    use super::*;

    #[test]
    fn a_peak_that_rose_has_its_cause_from_the_places_that_are_new_or_hold_more() {
        let holder =
            |then, now| GrownHolder { holder: "x".to_owned(), then, now, ..GrownHolder::default() };
        let text = |grown: Vec<GrownHolder>| {
            let rise = of_peak(&Finding { grown, ..Finding::new(Code::PeakRegression, "") });
            rise.map(|Rise { cause, remedy }| (cause, remedy))
        };
        assert_eq!(text(Vec::new()), None);
        assert_eq!(text(vec![holder(5, 4)]), None);
        let (cause, remedy) = text(vec![holder(0, 4), holder(0, 1), holder(5, 4)]).unwrap();
        assert_eq!(cause, "these 2 allocations are new, or their tensors live longer than before");
        assert!(remedy.starts_with("remove the allocation"), "{remedy}");
        let (cause, remedy) = text(vec![holder(1, 4)]).unwrap();
        assert_eq!(cause, "this call site holds more memory at the peak than in the baseline");
        assert!(remedy.contains("a wider dtype"), "{remedy}");
        let unlisted = GrownHolder { is_unlisted: true, ..holder(0, 4) };
        let (cause, _) = text(vec![unlisted]).unwrap();
        assert_eq!(cause, "this call site holds more memory at the peak than in the baseline");
        let (cause, _) = text(vec![holder(0, 4), holder(1, 4)]).unwrap();
        assert!(cause.starts_with("these 2 call sites hold more memory"), "{cause}");
    }
}
