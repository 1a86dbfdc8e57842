//! What kind of mistake lets memory grow: causes, recognised from survivors.
//!
//! A cause is data (a code, a title, a remedy, a page) and a predicate over one
//! group of survivors. A rule holds for a space if the groups that it fits make
//! up at least half of the growth; the first that holds, in the order of
//! [`RULES`], is the cause. To add one: a file beside this one, a page below
//! `pages/causes/`, a row in [`RULES`], and a pair of scenarios (leaky, fixed)
//! in `tests/src/scenarios`.

mod batches_kept;
mod buffers_kept;
mod cache_grows;
mod cache_keeps_largest;
mod cache_never_cleared;
mod device_recreated;
mod free_without_context;
mod grad_store_kept;
mod graph_kept;
mod optimizer_recreated;
mod outputs_collected;
mod tensor_kept;
mod variable_shapes;
mod variables_copied;
mod view_keeps_storage;

use serde::{Deserialize, Serialize};

use crate::attribution::{Attribution, Survivors};
use crate::record::SpaceRecord;
use crate::size::both;
use crate::space::Space;
use crate::stack::{Owner, Stack};
use crate::survivors::Reading;

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
    /// Whether a group of survivors bears its marks.
    fits: fn(&Suspect<'_>, &Evidence<'_>) -> bool,
    /// What was seen, in one sentence.
    evidence: fn(&[&Suspect<'_>], &Evidence<'_>) -> String,
}

/// A rule as its file writes it down.
macro_rules! rule {
    ($code:literal, $title:literal, $remedy:literal, $fits:expr, $evidence:expr) => {
        pub(super) const RULE: $crate::diagnosis::Rule = $crate::diagnosis::Rule {
            code: $code,
            title: $title,
            remedy: $remedy,
            page: include_str!(concat!("../../pages/causes/", $code, ".md")),
            fits: $fits,
            evidence: $evidence,
        };
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
    batches_kept::RULE,
    cache_never_cleared::RULE,
    cache_grows::RULE,
    cache_keeps_largest::RULE,
    outputs_collected::RULE,
    variable_shapes::RULE,
    tensor_kept::RULE,
    buffers_kept::RULE,
];

/// Survivors of one place, and what is made of them.
#[derive(Debug, Clone, Copy)]
pub struct Suspect<'a> {
    /// The survivors.
    pub survivors: &'a Survivors,
    /// Where they were allocated.
    pub stack: &'a Stack,
    /// The kind of growth.
    pub reading: Reading,
    /// Allocations of their place in the last iteration.
    pub calls: u64,
}

impl Suspect<'_> {
    /// Whether at least half of its blocks are so.
    fn mostly(&self, blocks: u64) -> bool {
        blocks > 0 && 2 * blocks >= self.survivors.group.count()
    }

    /// The operation of candle that allocated them.
    fn operation(&self) -> String {
        self.stack.operation().unwrap_or_default()
    }

    /// Whether any tensor is known to hold them.
    fn is_tensor(&self) -> bool {
        let held = &self.survivors.held;
        held.whole + held.views > 0 || !self.survivors.tensors.is_empty()
    }

    /// Whether its scope or a function on its stack has one of these words.
    fn mentions(&self, words: &[&str]) -> bool {
        let scope = self.survivors.scope.to_lowercase();
        words.iter().any(|word| {
            scope.contains(word)
                || self
                    .stack
                    .frames
                    .iter()
                    .any(|frame| frame.function.to_lowercase().contains(word))
        })
    }
}

/// Everything that is known of the growth of one space.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The figures of the space.
    pub measured: &'a SpaceRecord,
    /// Who held what.
    pub attribution: &'a Attribution,
    /// Measured iterations.
    pub iterations: u32,
}

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

/// The survivors of `space` with what is made of them, the fastest growing first.
pub fn suspects(attribution: &Attribution, space: Space) -> Vec<Suspect<'_>> {
    const NOWHERE: &Stack = &Stack { frames: Vec::new() };
    let mut suspects: Vec<Suspect<'_>> = attribution
        .survivors
        .iter()
        .filter(|survivors| survivors.space == space)
        .map(|survivors| Suspect {
            survivors,
            stack: attribution.stacks.get(survivors.stack).unwrap_or(NOWHERE),
            reading: survivors.group.read(),
            calls: last_calls(attribution, survivors),
        })
        .collect();
    suspects.sort_by(|a, b| {
        let size = |suspect: &Suspect<'_>| {
            (suspect.reading.bytes_per_iteration, suspect.survivors.group.bytes())
        };
        size(b).cmp(&size(a)).then_with(|| a.stack.sorted_by().cmp(&b.stack.sorted_by()))
    });
    suspects
}

/// Allocations of the survivors' place in the last iteration that it
/// allocated in, whatever the tensors were.
fn last_calls(attribution: &Attribution, survivors: &Survivors) -> u64 {
    let places = || {
        attribution.places.iter().filter(|place| {
            place.space == survivors.space
                && place.stack == survivors.stack
                && place.scope == survivors.scope
        })
    };
    let last = places().map(|place| place.last).max();
    places().filter(|place| Some(place.last) == last).map(|place| place.last_calls).sum()
}

/// The cause of the growth of `space`; `None` where nothing grows, or where
/// nothing is known of it.
pub fn diagnose(suspects: &[Suspect<'_>], evidence: &Evidence<'_>) -> Option<Cause> {
    let growing: Vec<&Suspect<'_>> =
        suspects.iter().filter(|suspect| suspect.reading.bytes_per_iteration > 0).collect();
    // Growth that no place accounts for is told by the level alone: then what
    // survives is looked at by its size.
    let (considered, weight): (Vec<&Suspect<'_>>, fn(&Suspect<'_>) -> u64) = if growing.is_empty() {
        (suspects.iter().collect(), |suspect| suspect.survivors.group.bytes())
    } else {
        (growing, |suspect| suspect.reading.bytes_per_iteration)
    };
    let all: u64 = considered.iter().map(|suspect| weight(suspect)).sum();
    RULES.iter().find_map(|rule| {
        let fitting: Vec<&Suspect<'_>> =
            considered.iter().copied().filter(|suspect| (rule.fits)(suspect, evidence)).collect();
        let share: u64 = fitting.iter().map(|suspect| weight(suspect)).sum();
        (share > 0 && 2 * share >= all).then(|| rule.cause(&fitting, evidence))
    })
}

/// The cause of what is still live when the body has returned, although
/// nothing grows: a buffer that was replaced by larger ones and kept.
pub fn diagnose_retained(attribution: &Attribution, space: Space) -> Option<Cause> {
    let largest = attribution
        .retained
        .iter()
        .filter_map(|holder| Some((holder, attribution.places.get(holder.place)?)))
        .filter(|(_, place)| place.space == space)
        .max_by_key(|(holder, _)| holder.bytes)?;
    let (holder, place) = largest;
    let alike = attribution.places.iter().filter(|other| {
        other.space == space && other.stack == place.stack && other.scope == place.scope
    });
    let (calls, bytes) =
        alike.fold((0, 0), |(calls, bytes), place| (calls + place.calls, bytes + place.bytes));
    // One block is left of several of different sizes, and no other was larger.
    let is_largest = holder.count == 1 && calls > 1 && holder.bytes * calls > bytes;
    // candle's quantized products keep a workspace for each device.
    let is_workspace = attribution
        .stack_of(place)
        .frames
        .iter()
        .any(|frame| frame.owner() == Owner::Candle && frame.function.contains("workspace"));
    let evidence = match (is_largest, is_workspace) {
        (true, _) => format!(
            "one block of {} is left of {calls} that the same line allocated, {} on average",
            both(holder.bytes),
            both(bytes / calls)
        ),
        (false, true) => {
            format!("candle keeps a workspace of {} for as long as the device", both(holder.bytes))
        }
        (false, false) => return None,
    };
    let rule = cache_keeps_largest::RULE;
    Some(Cause {
        code: rule.code.to_owned(),
        title: rule.title.to_owned(),
        evidence,
        remedy: rule.remedy.to_owned(),
    })
}

/// Rules about what does not grow: they inform, and accuse nobody.
const INFORMATIONAL: [&str; 2] = [cache_keeps_largest::RULE.code, variable_shapes::RULE.code];

/// What is known of survivors that do not grow; `None` where that is nothing.
pub fn remark(suspect: &Suspect<'_>, evidence: &Evidence<'_>) -> Option<Cause> {
    let mut rules = RULES.iter().filter(|rule| INFORMATIONAL.contains(&rule.code));
    let rule = rules
        .find(|rule| suspect.reading.bytes_per_iteration == 0 && (rule.fits)(suspect, evidence))?;
    Some(rule.cause(&[suspect], evidence))
}

impl Rule {
    fn cause(&self, suspects: &[&Suspect<'_>], evidence: &Evidence<'_>) -> Cause {
        Cause {
            code: self.code.to_owned(),
            title: self.title.to_owned(),
            evidence: (self.evidence)(suspects, evidence),
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
