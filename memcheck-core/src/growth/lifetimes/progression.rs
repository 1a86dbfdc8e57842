//! Finds blocks that stay, of which each is larger than the one before by the same number of bytes,
//! among blocks that come and go, such as the buffers of the lists that keep them.

use std::collections::BTreeMap;

use super::events::Look;
use super::group::KindGroup;
use super::history::History;
use super::judge_blocks::judge_blocks;
use super::kind::Kind;
use super::state::State;

/// Among more blocks of one iteration, some are larger than earlier ones by the same number by chance.
const MOST_AT_ONCE: usize = 8;

/// The blocks among `kinds` that rise evenly, and their growth; `None` if none do.
pub(super) fn progression<'a>(
    history: &History,
    kinds: &[&'a Kind],
    look: &Look,
) -> Option<(Vec<&'a Kind>, State)> {
    let mut born: Vec<(usize, &Kind)> =
        kinds.iter().filter_map(|&kind| Some((only_birth(kind)?, kind))).collect();
    born.sort_by_key(|&(at, kind)| (at, kind.site, kind.size));
    let entries: Vec<&[(usize, &Kind)]> =
        born.chunk_by(|a, b| a.0 == b.0).filter(|kinds| kinds.len() <= MOST_AT_ONCE).collect();
    let mut steps = BTreeMap::<Increase, usize>::new();
    for pair in entries.windows(2) {
        for earlier in pair[0] {
            for step in pair[1].iter().filter_map(|later| Increase::between(earlier, later)) {
                *steps.entry(step).or_default() += 1;
            }
        }
    }
    let (step, _) = steps.into_iter().max_by_key(|&(_, count)| count)?;
    let mut runs = BTreeMap::<(usize, u64), Vec<&Kind>>::new();
    for &(at, kind) in entries.into_iter().flatten().filter(|(_, kind)| kind.site == step.site) {
        let before = at.checked_sub(step.entries).zip(kind.size.checked_sub(step.bytes));
        let mut run = before.and_then(|before| runs.remove(&before)).unwrap_or_default();
        run.push(kind);
        runs.insert((at, kind.size), run);
    }
    let run = runs.into_values().max_by_key(Vec::len)?;
    let growth = judge_blocks(&KindGroup::new(history, &run), look);
    growth.is_regular().then_some((run, growth))
}

/// By how much a block is larger than an earlier one of its call site, and later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Increase {
    site: Option<u32>,
    entries: usize,
    bytes: u64,
}

impl Increase {
    fn between(earlier: &(usize, &Kind), later: &(usize, &Kind)) -> Option<Self> {
        let ((before, smaller), (after, larger)) = (earlier, later);
        let bytes = larger.size.checked_sub(smaller.size).filter(|&bytes| bytes > 0)?;
        (smaller.site == larger.site).then_some(Self {
            site: larger.site,
            entries: after - before,
            bytes,
        })
    }
}

/// The entry in which all blocks of a kind were born, if all of them are live.
fn only_birth(kind: &Kind) -> Option<usize> {
    let blocks = &kind.blocks;
    let mut births = blocks.births.iter().enumerate().filter(|&(_, &births)| births > 0);
    match (births.next(), births.next()) {
        (Some((at, &births)), None) if blocks.now == births => Some(kind.from + at),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
