//! The reason of a regression: larger tensors, more of them, new ones or a larger set-up, as far as
//! the holders of the baseline and of the run show it. The baseline has no call stacks, so that no
//! rule can name a habit of the program.

use serde::{Deserialize, Serialize};

use crate::judgement::grown_holder::GrownHolder;
use crate::size::counted;

/// The reason of a regression, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rise {
    /// The kind of most of the bytes.
    pub kind: RiseKind,
    /// The reason in words.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

/// The difference between a holder of the run and the same holder of the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RiseKind {
    /// The memory is allocated before the iterations.
    Setup,
    /// The same call site allocates a larger tensor.
    Larger,
    /// The same call site holds more tensors of the same size.
    More,
    /// The same call site holds more, and its tensors are not known.
    Holds,
    /// The baseline does not have the call site.
    New,
}

impl RiseKind {
    fn of(holder: &GrownHolder) -> Self {
        match holder {
            _ if holder.is_setup => Self::Setup,
            _ if holder.was_tensor.is_some() => Self::Larger,
            _ if holder.is_new() => Self::New,
            _ if holder.has_tensor() && !holder.is_unlisted => Self::More,
            _ => Self::Holds,
        }
    }

    /// What `count` call sites do, as the predicate of a sentence.
    fn predicate(self, count: usize) -> &'static str {
        match (self, count) {
            (Self::Setup, 1) => "holds more memory from before the iterations (set-up)",
            (Self::Setup, _) => "hold more memory from before the iterations (set-up)",
            (Self::Larger, 1) => "allocates a larger tensor than in the baseline",
            (Self::Larger, _) => "allocate larger tensors than in the baseline",
            (Self::More, 1) => "holds more tensors of the same shape than in the baseline",
            (Self::More, _) => "hold more tensors of the same shape than in the baseline",
            (Self::Holds, 1) => "holds more memory at the peak than in the baseline",
            (Self::Holds, _) => "hold more memory at the peak than in the baseline",
            (Self::New, 1) => "is new, or its tensor lives longer than before",
            (Self::New, _) => "are new, or their tensors live longer than before",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Setup => {
                "look at what the test creates before it iterates: larger or additional weights, \
                 tables or inputs"
            }
            Self::Larger => {
                "find out what enlarges the tensor, such as a longer sequence, a larger batch or a \
                 wider dtype"
            }
            Self::More => {
                "drop the tensors earlier, or look for a loop or a branch that runs more often"
            }
            Self::Holds => {
                "look for a larger shape, a wider dtype, or tensors that are dropped later"
            }
            Self::New => "remove the allocation, or drop its tensor before the peak",
        }
    }
}

/// The reason of a peak that rose.
pub fn of_peak(grown: &[GrownHolder]) -> Option<Rise> {
    let mut kinds: Vec<(RiseKind, usize, i128)> = Vec::new();
    for holder in grown.iter().filter(|holder| holder.difference() > 0) {
        let kind = RiseKind::of(holder);
        match kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, count, bytes)) => {
                (*count, *bytes) = (*count + 1, *bytes + holder.difference())
            }
            None => kinds.push((kind, 1, holder.difference())),
        }
    }
    kinds.sort_by_key(|(kind, _, bytes)| (std::cmp::Reverse(*bytes), *kind));
    let &(kind, count, _) = kinds.first()?;
    let subject = match (kind, count) {
        (RiseKind::New, 1) => "this allocation".to_owned(),
        (RiseKind::New, count) => format!("these {count} allocations"),
        (_, 1) => "this call site".to_owned(),
        (_, count) => format!("these {count} call sites"),
    };
    let cause = match kinds.as_slice() {
        [_] => format!("{subject} {}", kind.predicate(count)),
        several => {
            let parts: Vec<String> = several
                .iter()
                .map(|(kind, count, _)| {
                    let sites = counted(*count as u64, "call site", "call sites");
                    format!("{sites} {}", kind.predicate(*count))
                })
                .collect();
            parts.join("; ")
        }
    };
    Some(Rise { kind, cause, remedy: kind.remedy().to_owned() })
}

/// The reason of more allocations, of which `new` call sites are new at the peak. A baseline has no
/// number of allocations for each line, so that a call site that runs more often is not known.
pub(super) fn of_allocations(new: usize) -> Rise {
    let (kind, cause, remedy) = match new {
        0 => (
            RiseKind::More,
            "no call site is new at the peak, so that one of them allocates more often, or a new \
             one frees its memory before the peak"
                .to_owned(),
            "look for a loop or a branch that runs more often, or for a new operation",
        ),
        1 => (
            RiseKind::New,
            "this call site is new at the peak".to_owned(),
            "remove the operation, or reuse its result",
        ),
        several => (
            RiseKind::New,
            format!("{several} call sites are new at the peak"),
            "remove the operations, or reuse their results",
        ),
    };
    Rise { kind, cause, remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(name: &str, then: u64, now: u64) -> GrownHolder {
        GrownHolder { holder: name.to_owned(), then, now, ..GrownHolder::default() }
    }

    fn reason(grown: &[GrownHolder]) -> (RiseKind, String) {
        let Rise { kind, cause, .. } = of_peak(grown).unwrap();
        (kind, cause)
    }

    #[test]
    fn a_peak_that_rose_has_its_cause_from_the_holders_that_are_new_or_hold_more() {
        assert_eq!(of_peak(&[]), None);
        assert_eq!(of_peak(&[holder("x", 5, 4)]), None);
        let (kind, cause) = reason(&[holder("x", 0, 4), holder("y", 0, 1), holder("z", 5, 4)]);
        let new = "these 2 allocations are new, or their tensors live longer than before";
        assert_eq!((kind, cause.as_str()), (RiseKind::New, new));
        let holds = "this call site holds more memory at the peak than in the baseline";
        assert_eq!(reason(&[holder("x", 1, 4)]), (RiseKind::Holds, holds.to_owned()));
        let unlisted = GrownHolder { is_unlisted: true, ..holder("x [1] f32", 0, 4) };
        assert_eq!(reason(&[unlisted]).1, holds);
    }

    #[test]
    fn larger_tensors_more_tensors_and_a_larger_set_up_are_different_causes() {
        let tensor = "randn [192,8] f32";
        let was_tensor = Some("[128,8] f32".to_owned());
        let larger = GrownHolder { was_tensor, ..holder(tensor, 512, 768) };
        let more = holder(tensor, 768, 1_536);
        let setup = GrownHolder { is_setup: true, ..larger.clone() };
        let kinds = [&larger, &more, &setup].map(|it| reason(std::slice::from_ref(it)));
        assert_eq!(kinds[0].1, "this call site allocates a larger tensor than in the baseline");
        assert_eq!(kinds.map(|it| it.0), [RiseKind::Larger, RiseKind::More, RiseKind::Setup]);
        let remedies: std::collections::BTreeSet<String> = [&larger, &more, &setup]
            .into_iter()
            .map(|it| of_peak(std::slice::from_ref(it)).unwrap().remedy)
            .collect();
        assert_eq!(remedies.len(), 3);
        // The kind of most bytes is first, and its remedy is the one that helps.
        let (kind, cause) = reason(&[larger, more]);
        assert_eq!(kind, RiseKind::More);
        let expected = "1 call site holds more tensors of the same shape than in the baseline; \
                        1 call site allocates a larger tensor than in the baseline";
        assert_eq!(cause, expected);
    }

    #[test]
    fn more_allocations_are_not_attributed_to_a_line_that_is_not_new() {
        assert_eq!(of_allocations(0).kind, RiseKind::More);
        assert_eq!(of_allocations(1).cause, "this call site is new at the peak");
        assert_eq!(of_allocations(2).kind, RiseKind::New);
    }
}
