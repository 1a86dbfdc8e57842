//! What kind of mistake lets memory grow: causes, recognised from survivors.
//!
//! A cause is data (a code, a title, a remedy, a page) and a predicate over one
//! group of survivors. A rule holds for a space if the groups that it fits make
//! up at least half of the growth; the first that holds, in the order of
//! [`RULES`], is the cause. Rules of [`Class::Remark`] are about what does not
//! grow. To add one: a file beside this one, a page below
//! `pages/causes/`, a row in [`RULES`], and a pair of scenarios (leaky, fixed)
//! in `tests/src/scenarios`.

mod batches_kept;
mod buffers_kept;
mod cache_by_shape;
mod cache_grows;
mod cache_keeps_largest;
mod cache_never_cleared;
mod device_recreated;
mod evidence;
mod free_without_context;
mod grad_store_kept;
mod graph_kept;
mod leftover;
mod optimizer_recreated;
mod outputs_collected;
mod suspect;
mod tensor_kept;
mod variable_shapes;
mod variables_copied;
mod view_keeps_storage;

use serde::{Deserialize, Serialize};

pub use evidence::Evidence;
use leftover::{Leftover, leftovers};
pub use suspect::{Suspect, suspects};

/// A kind of mistake, and how it is recognised.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its stable kebab-case name.
    pub code: &'static str,
    /// One line: what happens.
    pub title: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
    /// The explanation, as `cargo memcheck explain CODE` prints it.
    pub page: &'static str,
    /// What it says of a program.
    pub class: Class,
    /// Whether a group of survivors bears its marks.
    fits: fn(&Suspect<'_>, &Evidence<'_>) -> bool,
    /// What was seen, in one sentence.
    evidence: fn(&[&Suspect<'_>], &Evidence<'_>) -> String,
    /// What has to hold of all the groups that it fits together; `None` for
    /// nothing more.
    holds: Option<fn(&[&Suspect<'_>], &Evidence<'_>) -> bool>,
    /// What it sees in bytes that are kept though nothing grows; `None` for a
    /// rule that knows growth only.
    retained: Option<Retained>,
}

/// What a rule sees in bytes of one place that are kept.
type Retained = fn(&Leftover<'_>, &Evidence<'_>) -> Option<String>;

/// What a rule says of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A mistake that lets memory grow.
    Mistake,
    /// What looks like growth and is none: it informs, and accuses nobody.
    Remark,
}

/// A rule as its file writes it down; what is different from most stands
/// behind a semicolon, as calls of [`Rule`]'s own methods.
macro_rules! rule {
    (
        $code:literal, $title:literal, $remedy:literal, $fits:expr, $evidence:expr
        $(; $($method:ident($($argument:expr)?)),+)?
    ) => {
        pub(super) const RULE: $crate::diagnosis::Rule = $crate::diagnosis::Rule {
            code: $code,
            title: $title,
            remedy: $remedy,
            page: include_str!(concat!("../../pages/causes/", $code, ".md")),
            class: $crate::diagnosis::Class::Mistake,
            fits: $fits,
            evidence: $evidence,
            holds: None,
            retained: None,
        }
        $($(.$method($($argument)?))+)?;
    };
}
use rule;

/// The rules, those that rest on the strongest evidence first.
pub const RULES: &[Rule] = &[
    free_without_context::RULE,
    device_recreated::RULE,
    optimizer_recreated::RULE,
    grad_store_kept::RULE,
    variables_copied::RULE,
    graph_kept::RULE,
    view_keeps_storage::RULE,
    cache_by_shape::RULE,
    batches_kept::RULE,
    cache_never_cleared::RULE,
    cache_grows::RULE,
    cache_keeps_largest::RULE,
    outputs_collected::RULE,
    variable_shapes::RULE,
    tensor_kept::RULE,
    buffers_kept::RULE,
];

/// A recognised cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The rule's name.
    pub code: String,
    /// What happens.
    pub title: String,
    /// What was seen.
    pub evidence: String,
    /// What to do about it.
    pub remedy: String,
}

/// The cause of the growth; `None` where nothing grows, or where nothing is
/// known of it.
pub fn diagnose(evidence: &Evidence<'_>) -> Option<Cause> {
    recognise(&evidence.accused(), evidence.bytes_per_iteration, evidence)
}

/// The first rule whose groups weigh at least half of `all`.
fn recognise(accused: &[(&Suspect<'_>, u64)], all: u64, evidence: &Evidence<'_>) -> Option<Cause> {
    RULES.iter().filter(|rule| rule.class == Class::Mistake).find_map(|rule| {
        let fitting = accused.iter().filter(|(suspect, _)| (rule.fits)(suspect, evidence));
        let (suspects, weights): (Vec<&Suspect<'_>>, Vec<u64>) = fitting.copied().unzip();
        let share: u64 = weights.iter().sum();
        let holds = rule.holds.is_none_or(|holds| holds(&suspects, evidence));
        (holds && share > 0 && 2 * share >= all).then(|| rule.cause(&suspects, evidence))
    })
}

/// The cause of what is still live when the body has returned: that of the
/// growth, where the places that grow hold at least half of it, else what the
/// rules know of bytes that are kept though nothing grows.
pub fn diagnose_retained(evidence: &Evidence<'_>) -> Option<Cause> {
    let leftovers = leftovers(evidence);
    let all: u64 = leftovers.iter().map(|leftover| leftover.holder.bytes).sum();
    let held_by = |suspect: &Suspect<'_>| -> u64 {
        let held = leftovers.iter().filter(|leftover| leftover.is_of(suspect.survivors));
        held.map(|leftover| leftover.holder.bytes).sum()
    };
    let accused: Vec<(&Suspect<'_>, u64)> =
        evidence.accused().iter().map(|&(suspect, _)| (suspect, held_by(suspect))).collect();
    recognise(&accused, all, evidence).or_else(|| {
        RULES.iter().find_map(|rule| {
            let recognise = rule.retained?;
            let mut fitting = leftovers.iter().filter_map(|leftover| {
                Some((leftover.holder.bytes, recognise(leftover, evidence)?))
            });
            let (largest, seen) = fitting.next()?;
            let share = largest + fitting.map(|(bytes, _)| bytes).sum::<u64>();
            (2 * share >= all).then(|| rule.because(seen))
        })
    })
}

/// What is known of survivors that do not grow, of all of them; `None` where
/// that is nothing.
pub fn remark(suspects: &[&Suspect<'_>], evidence: &Evidence<'_>) -> Option<Cause> {
    let mut rules = RULES.iter().filter(|rule| rule.class == Class::Remark);
    let fits =
        |rule: &Rule, suspect: &Suspect<'_>| !suspect.grows() && (rule.fits)(suspect, evidence);
    let rule = rules.find(|rule| suspects.iter().all(|suspect| fits(rule, suspect)))?;
    Some(rule.cause(suspects, evidence))
}

impl Rule {
    /// The same rule, about what does not grow.
    const fn remark(self) -> Self {
        Self { class: Class::Remark, ..self }
    }

    /// The same rule, for groups of which this holds all together.
    const fn if_together(self, holds: fn(&[&Suspect<'_>], &Evidence<'_>) -> bool) -> Self {
        Self { holds: Some(holds), ..self }
    }

    /// The same rule, which also knows bytes that are kept though nothing grows.
    const fn knows_retained(self, retained: Retained) -> Self {
        Self { retained: Some(retained), ..self }
    }

    fn cause(&self, suspects: &[&Suspect<'_>], evidence: &Evidence<'_>) -> Cause {
        self.because((self.evidence)(suspects, evidence))
    }

    fn because(&self, seen: String) -> Cause {
        Cause {
            code: self.code.to_owned(),
            title: self.title.to_owned(),
            evidence: seen,
            remedy: self.remedy.to_owned(),
        }
    }
}

/// Bytes an iteration of these groups together.
fn rate(suspects: &[&Suspect<'_>]) -> u64 {
    suspects.iter().map(|suspect| suspect.reading.bytes_per_iteration).sum()
}

/// Blocks of these groups together.
fn count(suspects: &[&Suspect<'_>]) -> u64 {
    suspects.iter().map(|suspect| suspect.survivors.group.count()).sum()
}

#[cfg(test)]
mod tests;
