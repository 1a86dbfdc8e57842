//! The causes of growth, recognized from survivors.
//!
//! A cause is data (a code, a title, a remedy, a page) and a predicate over one group of survivors.
//! The first rule of [`RULES`] whose groups make up at least half of the growth is the cause. Rules
//! of [`RuleClass::Remark`] describe survivors that do not grow.
//!
//! CONTRIBUTING.md lists the places of a new rule.

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
mod owners;
mod sites;
mod suspect;
mod tensor_kept;
mod variable_shapes;
mod variables_copied;
mod view_keeps_storage;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::judgement::head_line::HeadLine;
use crate::judgement::named_lines::NamedLines;
use crate::measurement::attribution::Survivors;

pub use evidence::Evidence;
use leftover::{Leftover, leftovers};
pub use suspect::{Suspect, suspects};

/// A kind of mistake, with the predicates that recognize it.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Kebab-case; not the code of a finding, because `cargo memcheck explain` takes both.
    pub code: &'static str,
    /// The mistake in one line.
    pub title: &'static str,
    /// The remedy.
    pub remedy: &'static str,
    /// The explanation, as `cargo memcheck explain CODE` prints it.
    pub page: &'static str,
    /// The class of the rule: a mistake or a remark.
    pub class: RuleClass,
    /// True if a group of survivors satisfies the predicate of the rule.
    fits: fn(&Suspect<'_>, &Evidence<'_>) -> bool,
    evidence: fn(&[&Suspect<'_>], &Evidence<'_>) -> String,
    /// A condition on all groups that satisfy `fits` together.
    condition: Option<fn(&[&Suspect<'_>], &Evidence<'_>) -> bool>,
    /// Recognizes memory that is retained although it does not grow; `None` if the rule cannot.
    retained: Option<Retained>,
    /// The remedy with the lines to change; `None` if no line that is known is the one to change.
    at_lines: Option<RemedyAt>,
}

/// A remedy that names lines, such as `src/a.rs:7 and :9`.
#[derive(Debug, Clone, Copy)]
enum RemedyAt {
    /// The lines that allocate the memory.
    Allocating(fn(&str) -> String),
    /// The line that keeps it.
    Keeping(fn(&str) -> String),
}

type Retained = fn(&Leftover<'_>, &Evidence<'_>) -> Option<String>;

/// The class of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleClass {
    /// A mistake that lets memory grow.
    Mistake,
    /// A pattern that resembles growth but is not. The rule informs and does not report a mistake.
    Remark,
}

/// Optional parts follow a semicolon, as calls of [`Rule`]'s own methods.
macro_rules! rule {
    (
        $code:literal, $title:literal, $remedy:literal, $fits:expr, $evidence:expr
        $(; $($method:ident($($argument:expr)?)),+)?
    ) => {
        pub(super) const RULE: $crate::judgement::diagnosis::Rule = $crate::judgement::diagnosis::Rule {
            code: $code,
            title: $title,
            remedy: $remedy,
            page: include_str!(concat!("../../../pages/causes/", $code, ".md")),
            class: $crate::judgement::diagnosis::RuleClass::Mistake,
            fits: $fits,
            evidence: $evidence,
            condition: None,
            retained: None,
            at_lines: None,
        }
        $($(.$method($($argument)?))+)?;
    };
}
use rule;

/// Strongest evidence first: the first rule that fits is the cause, so general rules come last.
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

/// A recognized cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The rule's name.
    pub code: String,
    /// The title of the rule.
    pub title: String,
    /// The observation.
    pub evidence: String,
    /// The remedy.
    pub remedy: String,
}

impl Cause {
    /// The same cause with the line that keeps the memory in its remedy.
    #[must_use]
    pub fn kept_at(self, at: &HeadLine) -> Self {
        let rule = RULES.iter().find(|rule| rule.code == self.code);
        let Some(RemedyAt::Keeping(text)) = rule.and_then(|rule| rule.at_lines) else {
            return self;
        };
        let mut lines = NamedLines::default();
        lines.add(&at.file, at.line);
        let remedy = lines.text().map(|at| text(&at));
        Self { remedy: remedy.unwrap_or(self.remedy), ..self }
    }

    /// True if the remedy is about certain lines, or about one kind of mistake.
    pub fn has_certain_remedy(&self) -> bool {
        let is_of_rule = |rule: &Rule| rule.code == self.code && rule.remedy == self.remedy;
        !self.is_general() || !RULES.iter().any(is_of_rule)
    }

    /// True if a kept tensor holds the graph that computed it.
    pub fn is_graph(&self) -> bool {
        self.code == graph_kept::RULE.code
    }

    /// True if the memory is kept, and no rule knows how.
    pub fn is_general(&self) -> bool {
        [tensor_kept::RULE.code, buffers_kept::RULE.code].contains(&self.code.as_str())
    }
}

/// The cause of the growth; `None` if the space does not grow or no rule fits.
pub fn diagnose(evidence: &Evidence<'_>) -> Option<Cause> {
    recognize(&evidence.candidates(), evidence.bytes_per_iteration, evidence)
}

fn recognize(
    candidates: &[(&Suspect<'_>, u64)],
    all: u64,
    evidence: &Evidence<'_>,
) -> Option<Cause> {
    RULES.iter().filter(|rule| rule.class == RuleClass::Mistake).find_map(|rule| {
        let fitting = candidates.iter().filter(|(suspect, _)| (rule.fits)(suspect, evidence));
        let (suspects, weights): (Vec<&Suspect<'_>>, Vec<u64>) = fitting.copied().unzip();
        // A cause must explain at least half of the bytes.
        let share: u64 = weights.iter().sum();
        let condition = rule.condition.is_none_or(|condition| condition(&suspects, evidence));
        (condition && share > 0 && 2 * share >= all).then(|| rule.cause(&suspects, evidence))
    })
}

/// The cause of memory that is live after the body: that of the growth if the sites that grow hold
/// at least half of it, else by the rules for retained memory.
pub fn diagnose_retained(evidence: &Evidence<'_>) -> Option<Cause> {
    let leftovers = leftovers(evidence);
    let all: u64 = leftovers.iter().map(|leftover| leftover.holder.bytes).sum();
    let mut held: HashMap<(usize, &str), u64> = HashMap::new();
    for leftover in &leftovers {
        *held.entry(leftover.site()).or_default() += leftover.holder.bytes;
    }
    let held_by = |suspect: &Suspect<'_>| {
        let Survivors { stack, scope, .. } = suspect.survivors;
        held.get(&(*stack, scope.as_str())).copied().unwrap_or(0)
    };
    let candidates: Vec<(&Suspect<'_>, u64)> =
        evidence.candidates().iter().map(|&(suspect, _)| (suspect, held_by(suspect))).collect();
    recognize(&candidates, all, evidence).or_else(|| {
        RULES.iter().find_map(|rule| {
            let recognize = rule.retained?;
            let fitting = leftovers
                .iter()
                .filter_map(|leftover| Some((leftover, recognize(leftover, evidence)?)));
            let fitting: Vec<(&Leftover<'_>, String)> = fitting.collect();
            let share = fitting.iter().map(|(leftover, _)| leftover.holder.bytes).sum::<u64>();
            let lines = fitting.iter().map(|(leftover, _)| leftover.stack).collect();
            let (_, seen) = fitting.into_iter().next()?;
            (2 * share >= all).then(|| rule.with_evidence(seen, &lines))
        })
    })
}

/// A remark that fits all of these survivors, none of which may grow; `None` if no rule fits.
pub fn remark(suspects: &[&Suspect<'_>], evidence: &Evidence<'_>) -> Option<Cause> {
    let mut rules = RULES.iter().filter(|rule| rule.class == RuleClass::Remark);
    let fits =
        |rule: &Rule, suspect: &Suspect<'_>| !suspect.grows() && (rule.fits)(suspect, evidence);
    let rule = rules.find(|rule| suspects.iter().all(|suspect| fits(rule, suspect)))?;
    Some(rule.cause(suspects, evidence))
}

impl Rule {
    const fn remark(self) -> Self {
        Self { class: RuleClass::Remark, ..self }
    }

    const fn with_condition(self, condition: fn(&[&Suspect<'_>], &Evidence<'_>) -> bool) -> Self {
        Self { condition: Some(condition), ..self }
    }

    const fn with_retained(self, retained: Retained) -> Self {
        Self { retained: Some(retained), ..self }
    }

    const fn at_lines(self, remedy: RemedyAt) -> Self {
        Self { at_lines: Some(remedy), ..self }
    }

    fn cause(&self, suspects: &[&Suspect<'_>], evidence: &Evidence<'_>) -> Cause {
        let lines = suspects.iter().map(|suspect| suspect.stack).collect();
        self.with_evidence((self.evidence)(suspects, evidence), &lines)
    }

    /// `lines` allocate the memory. The line that keeps it is not known here ([`Cause::kept_at`]).
    fn with_evidence(&self, seen: String, lines: &NamedLines) -> Cause {
        let remedy = match self.at_lines {
            Some(RemedyAt::Allocating(text)) => lines.text().map(|at| text(&at)),
            Some(RemedyAt::Keeping(_)) | None => None,
        };
        Cause {
            code: self.code.to_owned(),
            title: self.title.to_owned(),
            evidence: seen,
            remedy: remedy.unwrap_or_else(|| self.remedy.to_owned()),
        }
    }
}

fn rate(suspects: &[&Suspect<'_>]) -> u64 {
    suspects.iter().map(|suspect| suspect.reading.bytes_per_iteration).sum()
}

fn count(suspects: &[&Suspect<'_>]) -> u64 {
    suspects.iter().map(|suspect| suspect.survivors.group.count()).sum()
}

#[cfg(test)]
mod table;
#[cfg(test)]
mod tests;
