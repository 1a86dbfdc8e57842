//! Judges the level of a group, which is its live bytes at the end of each entry.

use super::amortized::amortized;
use super::bounded::is_bounded;
use super::events::{Events, Look, continues, records};
use super::exact::{Increment, accelerates, constant_increment, exact_from, exact_period};
use super::group::KindGroup;
use super::irregular::irregular;
use super::judge_blocks::{MIN_EVENTS, increasing_growth, next_look, periodic_growth};
use super::measures::{WINDOWS, is_above, mean, range, windows};
use super::misses::may_be_misses;
use super::rate::{Certainty, Rate};
use super::state::{PatternGrowth, State};
use super::{Open, PartPattern};

/// Judges a level. `quiet` must be the group if its blocks are quiet, else `None`.
pub(super) fn judge_level(level: &[i64], quiet: Option<&KindGroup>, look: &Look) -> State {
    let records = records(level);
    let events = Events::from_steps(&records);
    if is_bounded(level, &events, quiet, look) {
        return State::Quiet;
    }
    if let Some(growth) = floor_growth(level, look) {
        let growth = PatternGrowth { is_replaced: true, ..growth };
        return State::grows(growth, true);
    }
    if let Some(content) = amortized(&records, level.first().is_some_and(|&first| first > 0), look)
    {
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
        (false, _) if level.is_sorted() && events.count > 0 => {
            if events.count < MIN_EVENTS {
                Open::Rare
            } else {
                Open::Slows
            }
        }
        (false, _) => Open::Moves,
    };
    let until = next_look(level.len(), [events.quiet_from(look), look.horizon]);
    State::Open { open, until }
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
    let exact = exact_period(&changes, look).filter(|period| period.is_whole);
    if let Some(period) = exact.filter(|period| is_highest_at_end(level, period.length, look)) {
        return Some(periodic_growth(period.sum, period.length));
    }
    let any = || accelerates(&changes, 1, look).then_some(Increment { length: 1, more: 0 });
    if let Some(increment) = constant_increment(&changes, look).or_else(any) {
        // The level before the first measured iteration is not known.
        let measured = look.measured.saturating_sub(1).max(1);
        return Some(increasing_growth(&changes[1..], increment, &Look { measured, ..*look }));
    }
    let never_falls = changes.iter().all(|&change| change >= 0);
    let will_be_exact = !look.is_last && exact_from(&changes, look).is_some();
    let is_rise = if never_falls {
        !will_be_exact
            && irregular(&changes, look)
            && !may_be_misses(changes.get(1..).unwrap_or_default(), look)
    } else {
        climbs(level, look)
    };
    is_rise.then(|| PatternGrowth {
        rate: slope(level),
        pattern: PartPattern::Mean,
        is_replaced: true,
    })
}

/// True if the level was never higher than at its end. A list that is emptied and fills again rises
/// evenly too, up to the level that it had before.
fn is_highest_at_end(level: &[i64], period: usize, look: &Look) -> bool {
    let end = level.len().saturating_sub(period + look.quiet);
    level[end..].iter().max() >= level[..end].iter().max()
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

#[cfg(test)]
mod tests;
