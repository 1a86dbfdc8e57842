//! The reason of a regression: larger tensors, more of them, new ones or a larger set-up, as far as
//! the holders of the baseline and of the run show it. The baseline has no call stacks, so that no
//! rule can name a habit of the program.

mod larger;

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::judgement::grown_holder::GrownHolder;
use crate::judgement::named_lines::NamedLines;
use crate::size::{Size, counted};
use larger::Larger;

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
}

/// The holders of one kind, the largest change first.
struct RisenHolders<'a> {
    kind: RiseKind,
    holders: Vec<&'a GrownHolder>,
}

impl RisenHolders<'_> {
    fn bytes(&self) -> u64 {
        let sum = self.holders.iter().map(|holder| holder.difference()).sum::<i128>();
        u64::try_from(sum).unwrap_or(u64::MAX)
    }

    fn largest(&self) -> i128 {
        self.holders.iter().map(|holder| holder.difference()).max().unwrap_or(0)
    }

    /// ` at 2 call sites`, for a sentence that does not name them otherwise.
    fn number(&self) -> String {
        format!(" at {}", counted(self.holders.len() as u64, "call site", "call sites"))
    }

    fn lines(&self) -> Option<String> {
        let mut lines = NamedLines::default();
        for holder in &self.holders {
            match holder.line() {
                Some((file, line)) => lines.add(file, line),
                None => lines.add_unknown(),
            }
        }
        lines.text()
    }

    /// The reason in words, with its lines and its bytes.
    fn cause(&self) -> String {
        let lines = self.lines().map(|lines| format!(" at {lines}"));
        let first = self.holders.first();
        let named = lines.clone().unwrap_or_default();
        let at = lines.unwrap_or_else(|| self.number());
        let operation = first.map(|it| it.operation()).unwrap_or_default();
        let larger = Larger::of(&self.holders).map(|larger| larger.texts(self.holders.len()));
        let text = match (self.kind, self.holders.len(), larger) {
            (RiseKind::Larger, _, Some((change, remark))) => format!("{change}{at}{remark}"),
            (RiseKind::Larger, _, None) => format!("tensors are larger{at}"),
            (RiseKind::Setup, _, Some((change, remark))) => {
                format!("before the iterations (set-up), {change}{at}{remark}")
            }
            (RiseKind::Setup, _, None) => {
                format!("more memory is allocated before the iterations (set-up){at}")
            }
            (RiseKind::More, 1, _) => {
                let tensor = first.and_then(|it| it.tensor()).unwrap_or_default();
                format!("`{operation}`{named} holds more tensors {tensor} than in the baseline")
            }
            (RiseKind::More, ..) => {
                format!("more tensors of the same shapes are held{at} than in the baseline")
            }
            (RiseKind::Holds, 1, _) => {
                format!("`{operation}`{named} holds more memory than in the baseline")
            }
            (RiseKind::Holds, ..) => format!("more memory is held{at} than in the baseline"),
            (RiseKind::New, 1, _) => {
                format!("`{operation}`{named} is new at the peak")
            }
            // Or their tensors live longer, which is the same to a peak.
            (RiseKind::New, count, _) => format!("{count} allocations{named} are new at the peak"),
        };
        format!("{text} (+{})", Size(self.bytes()))
    }

    fn remedy(&self) -> String {
        let of = self.lines().map(|lines| format!(" of {lines}")).unwrap_or_default();
        match self.kind {
            RiseKind::Setup => "look at what the test creates before it iterates: larger or \
                                additional weights, tables or inputs"
                .to_owned(),
            RiseKind::Larger => {
                let larger = Larger::of(&self.holders).map(|larger| larger.remedy());
                larger.unwrap_or_else(|| "find out what enlarges the tensors".to_owned())
            }
            RiseKind::More => format!(
                "drop the tensors{of} earlier, or look for a loop or a branch that runs more often"
            ),
            RiseKind::Holds => {
                format!(
                    "look for larger tensors{of}, for more of them, or for some that are dropped later"
                )
            }
            RiseKind::New if self.holders.len() == 1 => {
                format!("remove the allocation{of}, or drop its tensor before the peak")
            }
            RiseKind::New => {
                format!("remove the allocations{of}, or drop their tensors before the peak")
            }
        }
    }
}

/// A kind with a smaller part of the rise has no remedy of its own.
const LEAST_SHARE: u64 = 4;
const MOST_REMEDIES: usize = 2;

/// The reason of a peak that rose.
pub fn of_peak(grown: &[GrownHolder]) -> Option<Rise> {
    let mut groups: Vec<RisenHolders<'_>> = Vec::new();
    for holder in grown.iter().filter(|holder| holder.difference() > 0) {
        let kind = RiseKind::of(holder);
        match groups.iter_mut().find(|group| group.kind == kind) {
            Some(group) => group.holders.push(holder),
            None => groups.push(RisenHolders { kind, holders: vec![holder] }),
        }
    }
    groups.sort_by_key(|group| Reverse((group.bytes(), group.largest(), Reverse(group.kind))));
    let first = groups.first()?;
    let causes: Vec<String> = groups.iter().map(RisenHolders::cause).collect();
    let all: u64 = groups.iter().map(RisenHolders::bytes).sum();
    let counts = |group: &&RisenHolders<'_>| group.bytes().saturating_mul(LEAST_SHARE) >= all;
    let remedies = groups.iter().filter(counts).take(MOST_REMEDIES).map(RisenHolders::remedy);
    let remedy = remedies.collect::<Vec<_>>().join("; ");
    Some(Rise { kind: first.kind, cause: causes.join("; "), remedy })
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

    fn at(line: u32, holder: GrownHolder) -> GrownHolder {
        GrownHolder { place: Some(format!("src/lib.rs:{line}")), ..holder }
    }

    fn resized(then: &str, now: &str) -> GrownHolder {
        let was_tensor = Some(format!("{then} f32"));
        GrownHolder { was_tensor, ..holder(&format!("add {now} f32"), 512, 768) }
    }

    #[test]
    fn a_peak_that_rose_has_its_cause_from_the_holders_that_are_new_or_hold_more() {
        assert_eq!(of_peak(&[]), None);
        assert_eq!(of_peak(&[holder("x", 5, 4)]), None);
        let (kind, cause) = reason(&[holder("x", 0, 4), holder("y", 0, 1), holder("z", 5, 4)]);
        let new = "2 allocations are new at the peak (+5 B)";
        assert_eq!((kind, cause.as_str()), (RiseKind::New, new));
        let holds = "`x` holds more memory than in the baseline (+3 B)";
        assert_eq!(reason(&[holder("x", 1, 4)]), (RiseKind::Holds, holds.to_owned()));
        let unlisted = GrownHolder { is_unlisted: true, ..holder("x [1] f32", 0, 3) };
        assert_eq!(reason(&[unlisted]).1, holds);
    }

    #[test]
    fn larger_tensors_more_tensors_and_a_larger_set_up_are_different_causes() {
        let larger = at(3, resized("[128,8]", "[192,8]"));
        let more = at(9, holder("randn [192,8] f32", 768, 1_536));
        let setup = GrownHolder { is_setup: true, ..larger.clone() };
        let kinds = [&larger, &more, &setup].map(|it| reason(std::slice::from_ref(it)));
        assert_eq!(kinds[0].1, "dimension 0 grew from 128 to 192 at src/lib.rs:3 (+256 B)");
        assert_eq!(
            kinds[2].1,
            "before the iterations (set-up), dimension 0 grew from 128 to 192 at src/lib.rs:3 (+256 B)"
        );
        assert_eq!(kinds.map(|it| it.0), [RiseKind::Larger, RiseKind::More, RiseKind::Setup]);
        let remedies: std::collections::BTreeSet<String> = [&larger, &more, &setup]
            .into_iter()
            .map(|it| of_peak(std::slice::from_ref(it)).unwrap().remedy)
            .collect();
        assert_eq!(remedies.len(), 3);
        // The kind of most bytes is first, and its remedy is the one that helps.
        let (kind, cause) = reason(&[larger, more]);
        assert_eq!(kind, RiseKind::More);
        let expected = "`randn` at src/lib.rs:9 holds more tensors [192,8] f32 than in the baseline \
                        (+768 B); dimension 0 grew from 128 to 192 at src/lib.rs:3 (+256 B)";
        assert_eq!(cause, expected);
    }

    #[test]
    fn a_cause_names_the_dimension_and_at_most_three_lines() {
        let rows = |line| at(line, resized("[128,8]", "[192,8]"));
        let new = at(33, holder("ones [192,8] f32", 0, 768));
        let (kind, cause) = reason(&[new, rows(34), rows(31), rows(30)]);
        assert_eq!(kind, RiseKind::New, "of two with the same bytes, that of the largest holder");
        assert_eq!(
            cause,
            "`ones` at src/lib.rs:33 is new at the peak (+768 B); dimension 0 grew from 128 to 192 \
             at src/lib.rs:30, :31 and :34 (+768 B)"
        );
        let many: Vec<GrownHolder> = (1..=9).map(rows).collect();
        let cause = reason(&many).1;
        assert!(
            cause.ends_with(" at src/lib.rs:1, :2, :3 and 6 more lines (+2.25 KiB)"),
            "{cause}"
        );
    }

    #[test]
    fn a_remedy_speaks_of_what_changed_only() {
        let remedy = |holder: GrownHolder| of_peak(&[holder]).unwrap().remedy;
        let rows = remedy(resized("[128,8]", "[192,8]"));
        assert!(rows.contains("dimension is 192") && !rows.contains("dtype"), "{rows}");
        let was_tensor = Some("[192,8] f16".to_owned());
        let dtype = remedy(GrownHolder { was_tensor, ..holder("add [192,8] f32", 1, 2) });
        assert!(dtype.contains("dtype is f32") && !dtype.contains("dimension"), "{dtype}");
        let more = remedy(at(9, holder("randn [192,8] f32", 768, 1_536)));
        assert!(more.starts_with("drop the tensors of src/lib.rs:9 earlier"), "{more}");
        let of_both = |now| {
            let rows = at(3, resized("[128,8]", "[192,8]"));
            of_peak(&[at(33, holder("ones [8] f32", 0, now)), rows]).unwrap().remedy
        };
        let ones = "remove the allocation of src/lib.rs:33, or drop its tensor before the peak; ";
        assert!(of_both(768).starts_with(ones) && of_both(768).contains("dimension is 192"));
        assert!(!of_both(769).contains("dimension"), "a part below a quarter has no remedy");
        let new = remedy(at(33, holder("ones [192,8] f32", 0, 768)));
        assert_eq!(
            new,
            "remove the allocation of src/lib.rs:33, or drop its tensor before the peak"
        );
    }

    #[test]
    fn more_allocations_are_not_attributed_to_a_line_that_is_not_new() {
        assert_eq!(of_allocations(0).kind, RiseKind::More);
        assert_eq!(of_allocations(1).cause, "this call site is new at the peak");
        assert_eq!(of_allocations(2).kind, RiseKind::New);
    }
}
