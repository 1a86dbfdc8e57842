//! Finds a buffer that is replaced by larger ones again and again, among blocks of random sizes from
//! the same call site. All blocks of the buffer die at the same age, and their level grows exactly.

use std::collections::BTreeMap;

use super::Open;
use super::events::Look;
use super::group::KindGroup;
use super::history::History;
use super::judge_level::judge_level;
use super::kind::Kind;
use super::state::State;

/// Sizes at random rarely rise by the same number of bytes as often as this, and never fall.
const MIN_RISES: usize = 2;

/// The kinds of the blocks of one buffer, and its growth.
pub(super) struct Buffer<'a> {
    pub(super) kinds: Vec<&'a Kind>,
    pub(super) growth: State,
}

/// The buffers among `kinds`.
pub(super) fn buffers<'a>(history: &History, kinds: &[&'a Kind], look: &Look) -> Vec<Buffer<'a>> {
    let is_dead = |kind: &&Kind| kind.blocks.now == 0 && birth(kind).is_some();
    let mut dead: Vec<&Kind> = kinds.iter().copied().filter(is_dead).collect();
    dead.sort_by_key(|kind| (kind.site, kind.age(), birth(kind)));
    let of_one_age = dead.chunk_by(|a, b| a.site == b.site && a.age() == b.age());
    let found = of_one_age.filter_map(|dead| {
        let dead = &rising(dead)[..];
        let group = KindGroup::new(history, dead);
        // A younger block may die at this age too, so that the last entries have no level yet.
        let level = &group.live[..group.settled()];
        // They have been observed all the same.
        let least = look.horizon.saturating_sub(group.age);
        let observed = Look { horizon: level.len().clamp(least, look.horizon), ..*look };
        let mut growth = judge_level(level, None, &observed);
        if !growth.is_exact() {
            if look.is_last || !rises_evenly(level) {
                return None;
            }
            growth = State::Open { open: Open::GoesOn, until: look.horizon };
        }
        let kinds = dead.iter().copied().chain(live_block(kinds, dead)).collect();
        Some(Buffer { kinds, growth })
    });
    found.collect()
}

/// The longest run of these blocks, in the order of their births, in which each is larger than the one
/// before by the difference that is the most frequent. All, if no difference is.
fn rising<'a>(dead: &[&'a Kind]) -> Vec<&'a Kind> {
    let mut differences = BTreeMap::<u64, usize>::new();
    for pair in dead.windows(2) {
        let difference = pair[1].size.checked_sub(pair[0].size).filter(|&more| more > 0);
        *differences.entry(difference.unwrap_or(0)).or_default() += 1;
    }
    differences.remove(&0);
    let most = differences.into_iter().max_by_key(|&(_, count)| count);
    let Some((difference, _)) = most.filter(|&(_, count)| count >= MIN_RISES) else {
        return dead.to_vec();
    };
    let mut runs = BTreeMap::<u64, Vec<&Kind>>::new();
    for kind in dead {
        let before = kind.size.checked_sub(difference).and_then(|size| runs.remove(&size));
        let mut run = before.unwrap_or_default();
        run.push(*kind);
        runs.insert(kind.size, run);
    }
    runs.into_values().max_by_key(Vec::len).unwrap_or_default()
}

/// True if a level rises several times by the same number of bytes, and never falls.
fn rises_evenly(level: &[i64]) -> bool {
    let there = level.iter().position(|&live| live > 0).unwrap_or(level.len());
    let changes = level[there..].windows(2).map(|pair| pair[1] - pair[0]);
    let mut changes = changes.filter(|&change| change != 0);
    let first = changes.next().unwrap_or(0);
    let (mut rises, mut alike) = (1, true);
    changes.for_each(|change| (rises, alike) = (rises + 1, alike && change == first));
    first > 0 && alike && rises >= MIN_RISES
}

/// The entry in which the only block of a kind was born.
pub(super) fn birth(kind: &Kind) -> Option<usize> {
    let mut births = kind.blocks.births.iter().enumerate().filter(|&(_, &births)| births > 0);
    match (births.next(), births.next()) {
        (Some((at, 1)), None) => Some(kind.from + at),
        _ => None,
    }
}

/// The block that has replaced the last of the `dead` blocks of a buffer.
fn live_block<'a>(kinds: &[&'a Kind], dead: &[&Kind]) -> Option<&'a Kind> {
    let [.., before, last] = dead else { return None };
    let size = last.size + last.size.checked_sub(before.size)?;
    let born = birth(last)? + last.age();
    let follows = |kind: &&Kind| kind.key() == (last.site, size) && birth(kind) == Some(born);
    kinds.iter().copied().find(follows)
}
