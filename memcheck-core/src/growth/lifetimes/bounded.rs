//! True or false: the live bytes of a group have a bound, so that their level does not grow.

use super::events::{Events, Look, records};
use super::group::KindGroup;
use super::judge_blocks::Settled;
use super::measures::{WINDOWS, crossings, floors, is_above, trend};

/// A level that only rises passes its median once.
const CROSSINGS: usize = 8;

/// A list that was emptied fewer times has shown no rhythm.
const MIN_EMPTIED: usize = 3;

/// `quiet` must be the group if its blocks are quiet, else `None`.
pub(super) fn is_bounded(
    level: &[i64],
    records: &Events,
    quiet: Option<&KindGroup>,
    look: &Look,
) -> bool {
    let Some(group) = quiet else { return is_quiet(level, records, look) };
    repeats_exactly(level, group.age, look)
        || is_emptied_again(group, group.len(), look)
        || is_bounded_in_number(group, look)
        || expires(group, look)
        || (!number_rises(&group.live_blocks, group.age, look)
            && (is_quiet(level, records, look)
                || stays(filled(level, group.age), look)
                || is_emptied(level, &group.live_blocks, look)
                || is_full(level, group, look)))
}

/// True if a record is overdue and the level does not rise below the last one.
fn is_quiet(level: &[i64], records: &Events, look: &Look) -> bool {
    if !records.is_quiet(level.len(), look) {
        return false;
    }
    let tail = &level[(records.last + 1).min(level.len())..];
    let (first, second) = tail.split_at(tail.len() / 2);
    trend(tail) < 3.0 && !is_above(first, second)
}

/// The level since containers may have filled, because no block lives longer than `age`.
fn filled(level: &[i64], age: usize) -> &[i64] {
    &level[age.min(level.len() / 2)..]
}

/// True if the level, or its second half, passes its median often and does not rise. A queue with a
/// limit can take most of the first half to reach it.
fn stays(level: &[i64], look: &Look) -> bool {
    crosses_often(level, look) || crosses_often(&level[level.len() / 2..], look)
}

fn crosses_often(level: &[i64], look: &Look) -> bool {
    level.len() >= 2 * look.quiet && trend(level) < 1.0 && crossings(level) >= CROSSINGS
}

/// True if what was filled has been emptied: in the last quarter, bytes and number are once as low as
/// in the first.
fn is_emptied(level: &[i64], live_blocks: &[i64], look: &Look) -> bool {
    let falls_back = |level: &[i64]| {
        let quarter = level.len() / 4;
        level[level.len() - quarter..].iter().min() <= level[..quarter].iter().min()
    };
    level.len() >= 2 * look.quiet && falls_back(level) && falls_back(live_blocks)
}

/// True if the group is emptied again and again up to entry `until`. Each time, no older block is left
/// that could belong to a leak or a backlog, so the level is bounded, unless blocks live longer each
/// time, or more bytes are born.
pub(super) fn is_emptied_again(group: &KindGroup, until: usize, look: &Look) -> bool {
    let emptied = Events::from_entries(group.emptied());
    emptied.count >= MIN_EMPTIED
        && until.saturating_sub(emptied.last) <= emptied.longest
        && group.ages.is_quiet(group.len(), look)
        && stays_below(&group.born, 3.0, look)
        && has_largest(group, look)
}

/// True if blocks live for a time that does not rise, and no more of them are born in an iteration. The
/// level still rises while iterations get faster, because more of them end within this time.
fn expires(group: &KindGroup, look: &Look) -> bool {
    group.lifetimes.is_some_and(|lifetimes| lifetimes.are_bounded(group.len(), look))
        && stays_below(&group.born, 3.0, look)
        && has_largest(group, look)
}

/// True if neither the number of live blocks nor their largest size rises any more. Their product is a
/// bound, although the level moves, because sizes differ.
pub(super) fn is_bounded_in_number(group: &KindGroup, look: &Look) -> bool {
    let (level, numbers) = (&group.live, Events::from_steps(&records(&group.live_blocks)));
    !number_rises(&group.live_blocks, group.age, look)
        && is_quiet(&group.live_blocks, &numbers, look)
        && has_largest(group, look)
        && [numbers.last, level.len() / 2].iter().all(|&from| trend(&level[from..]) < 1.0)
}

/// True if a block that is larger than all before is overdue.
pub(super) fn has_largest(group: &KindGroup, look: &Look) -> bool {
    group.largest.as_ref().is_some_and(|sizes| stays_below(sizes, 1.0, look))
}

/// True if a record of the series is overdue and the entries with births do not rise below the last
/// one, as a buffer does that is replaced by larger ones, but is smaller than a block before it.
fn stays_below(born: &[i64], most_trend: f64, look: &Look) -> bool {
    let records = Events::from_steps(&records(born));
    let highest = born.iter().max().and_then(|highest| born.iter().position(|at| at == highest));
    let later = &born[highest.map_or(0, |highest| highest + 1)..];
    let later: Vec<i64> = later.iter().copied().filter(|&born| born > 0).collect();
    let (first, second) = later.split_at(later.len() / 2);
    records.is_quiet(born.len(), look) && trend(&later) < most_trend && !is_above(first, second)
}

/// Blocks that all die have at most their greatest age times the most bytes born in one entry: true
/// if neither rises any more, and the level does not rise since.
fn is_full(level: &[i64], group: &KindGroup, look: &Look) -> bool {
    let length = level.len();
    let born = Events::from_steps(&records(&group.born));
    if !born.is_quiet(length, look) || !group.ages.is_quiet(length, look) {
        return false;
    }
    let stays = Settled::new(group).events;
    let begin = (born.last.max(group.ages.last).max(stays.last) + 1).min(length);
    let tail = &level[begin..];
    !number_rises(&group.live_blocks[begin..], group.age, look)
        && !only_rises(tail)
        && trend(tail) < 3.0
}

/// True if the lowest number of live blocks rises from each window to the next, or may do so. A
/// window is at least as long as a block can live, so that a container has been emptied in it, if
/// it ever is. A number that is constant needs no second window. Numbers are compared instead of
/// bytes, because those of blocks of random sizes also rise by chance.
fn number_rises(live_blocks: &[i64], age: usize, look: &Look) -> bool {
    let is_constant = |last: &[i64]| last.iter().all(|live| live == &last[0]);
    let quiet_from = live_blocks.len().checked_sub(look.quiet);
    if quiet_from.is_some_and(|from| is_constant(&live_blocks[from..])) {
        return false;
    }
    let count = (live_blocks.len() / age.max(1)).clamp(1, WINDOWS);
    let floors = floors(live_blocks, count);
    floors.windows(2).all(|pair| pair[0] < pair[1])
}

/// True if the lowest levels of eight windows rise and never fall. A bounded level also falls.
fn only_rises(level: &[i64]) -> bool {
    let floors = floors(level, WINDOWS);
    floors.first() < floors.last() && floors.windows(2).all(|pair| pair[0] <= pair[1])
}

/// True if the level changes and repeats exactly, for at least one period, `quiet` entries and the
/// greatest age: a list that fills and a queue can together rise as they did before.
fn repeats_exactly(level: &[i64], age: usize, look: &Look) -> bool {
    (1..=level.len() / 2).any(|period| {
        let compared = period.max(look.quiet).max(age);
        compared + period <= level.len()
            && level[level.len() - period..].iter().any(|&live| live != level[level.len() - 1])
            && (level.len() - compared..level.len()).rev().all(|at| level[at] == level[at - period])
    })
}

#[cfg(test)]
mod tests;
