//! Judges the level of a group, which is its live bytes at the end of each entry.

use super::amortized::amortized;
use super::events::{Events, Look, continues, records};
use super::exact::{constant_increment, exact_from, exact_period};
use super::group::KindGroup;
use super::irregular::irregular;
use super::judge_blocks::{Settled, increasing_growth, next_look, periodic_growth};
use super::rate::{Certainty, Rate};
use super::state::{PatternGrowth, State};
use super::{Open, PartPattern};

const WINDOWS: usize = 8;

const CROSSINGS: usize = 8;

/// Judges a level. `quiet` must be the group if its blocks are quiet, else `None`.
pub(super) fn judge_level(level: &[i64], quiet: Option<&KindGroup>, look: &Look) -> State {
    let records = records(level);
    let events = Events::from_entries(records.iter().map(|&(at, _)| at));
    let is_quiet = is_quiet(level, &events, look);
    let is_bounded = quiet.map_or(is_quiet, |group| {
        repeats_exactly(level, group.age, look)
            || (!number_rises(&group.live_blocks, group.age, look)
                && (is_quiet || crosses_often(level, look) || is_full(level, group, look)))
    });
    if is_bounded {
        return State::Quiet;
    }
    if let Some(growth) = floor_growth(level, look) {
        let growth = PatternGrowth { is_replaced: true, ..growth };
        return State::grows(growth, true);
    }
    if let Some(content) = amortized(&records, look) {
        let pattern = PartPattern::Amortized {
            bytes: content.bytes.unsigned_abs(),
            distance: content.distance as u32,
        };
        return State::grows(
            PatternGrowth { rate: content.rate(), pattern, is_replaced: true },
            true,
        );
    }
    let open = match (quarters_rise(level), keeps_rising(level)) {
        (true, true) => Open::GoesOn,
        (true, false) => Open::Slows,
        (false, _) => Open::Moves,
    };
    let until = next_look(level.len(), [events.quiet_from(look), look.horizon]);
    State::Open { open, until }
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

/// True if the level passes its median often and does not rise.
fn crosses_often(level: &[i64], look: &Look) -> bool {
    level.len() >= 2 * look.quiet && trend(level) < 1.0 && crossings(level) >= CROSSINGS
}

/// Blocks that all die have at most their greatest age times the most bytes born in one entry: true
/// if neither rises any more, and the level does not rise since.
fn is_full(level: &[i64], group: &KindGroup, look: &Look) -> bool {
    let length = level.len();
    let born = Events::from_entries(self::records(&group.born).into_iter().map(|(at, _)| at));
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

/// Growth of the floor of the level: of each entry, the lowest level from there to the end.
fn floor_growth(level: &[i64], look: &Look) -> Option<PatternGrowth> {
    if level.len() < look.horizon.max(2) {
        return None;
    }
    let mut lowest = level.to_vec();
    for at in (1..lowest.len()).rev() {
        lowest[at - 1] = lowest[at - 1].min(lowest[at]);
    }
    if !continues(&differences(&lowest), look) {
        return None;
    }
    let changes = differences(level);
    if let Some(period) = exact_period(&changes, look).filter(|period| period.is_whole) {
        return Some(periodic_growth(period.sum, period.length));
    }
    if let Some(increment) = constant_increment(&changes, look) {
        return Some(increasing_growth(&changes, increment.length, increment.more));
    }
    let never_falls = changes.iter().all(|&change| change >= 0);
    let will_be_exact = !look.is_last && exact_from(&changes, look).is_some();
    let is_rise =
        if never_falls { !will_be_exact && irregular(&changes, look) } else { climbs(level, look) };
    is_rise.then(|| PatternGrowth {
        rate: slope(level),
        pattern: PartPattern::Mean,
        is_replaced: true,
    })
}

fn differences(level: &[i64]) -> Vec<i64> {
    let mut before = level.first().copied().unwrap_or(0);
    level.iter().map(|&live| live - std::mem::replace(&mut before, live)).collect()
}

/// True if each of eight windows is above the window before, both in its lowest and in its highest
/// level, and if the second half rises by at least three quarters as much as the first.
fn climbs(level: &[i64], look: &Look) -> bool {
    let is_climb = |level: &[i64]| {
        let windows: Vec<(i64, i64)> = windows(level, WINDOWS).map(range).collect();
        let all = windows.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1);
        let means: Vec<f64> = self::windows(level, WINDOWS).map(mean).collect();
        let (first, second) =
            (means[WINDOWS / 2 - 1] - means[0], means[WINDOWS - 1] - means[WINDOWS / 2]);
        all && 4.0 * second >= 3.0 * first
    };
    // The first four fifths must climb too: several looks would find growth by chance.
    if level.len() < look.horizon.max(8 * WINDOWS) {
        return false;
    }
    let earlier = &level[..level.len() * 4 / 5];
    is_climb(level) && (look.is_last || (earlier.len() >= look.horizon && is_climb(earlier)))
}

/// The lowest level of each window.
fn floors(level: &[i64], count: usize) -> Vec<i64> {
    windows(level, count).map(|window| range(window).0).collect()
}

fn windows(level: &[i64], count: usize) -> impl Iterator<Item = &[i64]> {
    let length = (level.len() / count).max(1);
    level[level.len().saturating_sub(length * count)..].chunks(length)
}

/// The rise per entry from the mean of the first window to that of the last.
fn slope(level: &[i64]) -> Rate {
    let sum = |window: &[i64]| window.iter().copied().map(i128::from).sum::<i128>();
    let length = (level.len() / WINDOWS).max(1);
    let mut windows = windows(level, WINDOWS);
    let first = windows.next().map_or(0, sum);
    let (last, steps) = windows.fold((first, 0), |(_, steps), window| (sum(window), steps + 1));
    let entries = steps.max(1) as u128 * (length * length) as u128;
    Rate::new((last - first).max(0).unsigned_abs(), entries, Certainty::Mean)
}

fn range(window: &[i64]) -> (i64, i64) {
    window.iter().fold((i64::MAX, i64::MIN), |(low, high), &live| (low.min(live), high.max(live)))
}

fn mean(window: &[i64]) -> f64 {
    window.iter().map(|&live| live as f64).sum::<f64>() / window.len().max(1) as f64
}

fn is_above(first: &[i64], second: &[i64]) -> bool {
    let (first, second) = (range(first), range(second));
    first.0 < second.0 && first.1 < second.1
}

fn quarters_rise(level: &[i64]) -> bool {
    let length = level.len() / 4;
    length > 0
        && (0..3).all(|at| {
            let quarter = |at: usize| &level[at * length..(at + 1) * length];
            is_above(quarter(at), quarter(at + 1))
        })
}

fn keeps_rising(level: &[i64]) -> bool {
    let means: Vec<f64> = windows(level, WINDOWS).map(mean).collect();
    let rise = |from: usize, to: usize| means[to] - means[from];
    means.len() >= WINDOWS && 2.0 * rise(WINDOWS / 2, WINDOWS - 1) > rise(0, WINDOWS / 2 - 1)
}

/// The slope in standard errors, corrected for the lag-1 correlation of neighboring levels.
fn trend(level: &[i64]) -> f64 {
    let count = level.len() as f64;
    if level.len() < 4 {
        return 0.0;
    }
    let (middle, mean) = ((count - 1.0) / 2.0, mean(level));
    let (mut product, mut square) = (0.0, 0.0);
    for (at, &live) in level.iter().enumerate() {
        let distance = at as f64 - middle;
        product += distance * (live as f64 - mean);
        square += distance * distance;
    }
    let slope = product / square;
    let (mut residues, mut lagged, mut before) = (0.0, 0.0, 0.0);
    for (at, &live) in level.iter().enumerate() {
        let residue = live as f64 - mean - slope * (at as f64 - middle);
        residues += residue * residue;
        lagged += residue * before;
        before = residue;
    }
    if residues <= 0.0 {
        return if slope > 0.0 { f64::INFINITY } else { 0.0 };
    }
    let correlation = (lagged / residues).clamp(0.0, 0.99);
    let error = (residues / (count - 2.0) / square).sqrt();
    slope / error * ((1.0 - correlation) / (1.0 + correlation)).sqrt()
}

fn crossings(level: &[i64]) -> usize {
    let mut sorted = level.to_vec();
    sorted.sort_unstable();
    let Some(&median) = sorted.get(sorted.len() / 2) else { return 0 };
    let sides = level.iter().map(|live| live.cmp(&median)).filter(|side| side.is_ne());
    let (crossings, _) = sides.fold((0, None), |(crossings, before), side| {
        (crossings + usize::from(before.is_some_and(|before| before != side)), Some(side))
    });
    crossings
}

#[cfg(test)]
mod tests;
