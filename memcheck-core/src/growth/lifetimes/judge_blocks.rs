//! Judges the settled births of a group: blocks that are older than any that died.

use super::amortized::amortized;
use super::events::{Events, Look, continues, continues_at_random, positive};
use super::exact::{
    Increment, accelerates, constant_increment, exact_from, exact_period, periodic_terms,
    subtract_regular_term,
};
use super::group::KindGroup;
use super::irregular::{irregular, mean};
use super::misses::may_be_misses;
use super::rate::{Certainty, Rate};
use super::state::{PatternGrowth, State};
use super::{Open, PartPattern};

/// With enough terms, every series is a sum of regular ones.
const MAX_REGULAR_TERMS: usize = 3;

/// Events at random whose distances do not get longer promise another one within this many mean
/// distances. The longest of a few distances can be too short for a promise: without this, 0.5 % of
/// the leaks that allocate in 10 to 20 % of the iterations pass instead of 0.3 %.
const MEAN_DISTANCES: usize = 12;

/// The fewest events with a mean distance.
const MIN_STEADY_EVENTS: usize = 5;

#[derive(Debug, Clone, Copy)]
pub(super) struct Settled {
    pub(super) events: Events,
    /// The first live block that is not settled may become an event: no quiet holds beyond it.
    pub(super) until: usize,
    steady_wait: usize,
}

impl Settled {
    pub(super) fn new(group: &KindGroup) -> Self {
        let settled = group.settled();
        let younger = group.left[settled..].iter().position(|&left| left > 0);
        let at: Vec<usize> = positive(&group.left[..settled]).collect();
        let steps: Vec<(usize, i64)> = at.iter().map(|&at| (at, group.left[at])).collect();
        Self {
            steady_wait: steady_wait(&at),
            events: Events::from_steps(&steps),
            until: younger.map_or(group.len(), |at| settled + at),
        }
    }

    pub(super) fn is_quiet(&self, look: &Look) -> bool {
        self.until >= self.quiet_from(look)
    }

    fn quiet_from(&self, look: &Look) -> usize {
        self.events.quiet_from(look).max(self.events.last + self.steady_wait + 1)
    }
}

/// The longest wait for another event after those `at` these entries; 0 if they get rarer, as the
/// misses of a cache do.
fn steady_wait(at: &[usize]) -> usize {
    let ([first, ..], [.., last]) = (at, at) else { return 0 };
    let middle = at[at.len() / 2];
    if at.len() < MIN_STEADY_EVENTS || last - middle > middle - first {
        return 0;
    }
    (last - first) * MEAN_DISTANCES / (at.len() - 1)
}

pub(super) fn judge_blocks(group: &KindGroup, look: &Look) -> State {
    let settled = Settled::new(group);
    if settled.is_quiet(look) {
        return State::Quiet;
    }
    let length = group.settled();
    let (series, blocks) = (&group.left[..length], &group.blocks[..length]);
    if let Some(state) = judge_regular(series, blocks, look) {
        return state;
    }
    let may_be_misses = may_be_misses(blocks, look);
    if continues_at_random(series, look) && irregular(series, look) && !may_be_misses {
        return match exact_from(series, look).filter(|_| !look.is_last) {
            Some(from) => State::Open { open: Open::GoesOn, until: from + group.age },
            None => State::grows(mean_growth(series), true),
        };
    }
    let enlargements: Vec<(usize, i64)> = positive(series).map(|at| (at, series[at])).collect();
    if let Some(content) = amortized(&enlargements, true, look) {
        let pattern = PartPattern::Amortized {
            bytes: content.bytes.unsigned_abs(),
            distance: content.distance as u32,
        };
        return State::grows(
            PatternGrowth { rate: content.rate(), pattern, is_replaced: false },
            true,
        );
    }
    let quiet_from = settled.quiet_from(look) + group.age;
    let leak_from = look.horizon + group.age;
    State::Open {
        open: match classify_open(series, settled.events.count, look) {
            Open::GoesOn if may_be_misses => Open::Slows,
            open => open,
        },
        until: next_look(group.len(), [quiet_from, leak_from]),
    }
}

pub(super) fn next_look(length: usize, ahead: [usize; 2]) -> usize {
    let ahead = ahead.into_iter().filter(|&until| until > length).min();
    ahead.unwrap_or(length + length / 10 + 1)
}

/// The fewest events of growth that goes on. One distance between two events is not a rhythm.
pub(super) const MIN_EVENTS: usize = 3;

fn classify_open(series: &[i64], events: usize, look: &Look) -> Open {
    if look.is_last && events < MIN_EVENTS {
        return Open::Rare;
    }
    let sum = |part: &[i64]| part.iter().copied().map(i128::from).sum::<i128>();
    let (first, second) = series.split_at(series.len() / 2);
    if 2 * sum(second) > sum(first) { Open::GoesOn } else { Open::Slows }
}

fn judge_regular(series: &[i64], blocks: &[i64], look: &Look) -> Option<State> {
    if !continues(series, look) {
        return None;
    }
    if let Some(state) = judge_whole_series(series, blocks, look) {
        return Some(state);
    }
    let mut rest = series.to_vec();
    let mut growth = Vec::new();
    for _ in 0..MAX_REGULAR_TERMS {
        let Some(period) = subtract_regular_term(&mut rest, look) else { break };
        growth.push(periodic_growth(period.sum, period.length));
        if Events::above_zero(&rest).is_quiet(rest.len(), look) {
            return Some(State::Grows { growth, is_whole: true });
        }
        if !continues(&rest, look) {
            return Some(State::Grows { growth, is_whole: false });
        }
        if let Some(State::Grows { growth: others, is_whole }) =
            judge_whole_series(&rest, &[], look)
        {
            growth.extend(others);
            return Some(State::Grows { growth, is_whole });
        }
    }
    if growth.is_empty() {
        return None;
    }
    let is_whole = irregular(&rest, look);
    if is_whole {
        growth.push(mean_growth(&rest));
    }
    Some(State::Grows { growth, is_whole })
}

fn judge_whole_series(series: &[i64], blocks: &[i64], look: &Look) -> Option<State> {
    // A series with one period is a sum of terms too, so that the simplest pattern comes first.
    if let Some(period) = exact_period(series, look) {
        return Some(State::grows(periodic_growth(period.sum, period.length), period.is_whole));
    }
    if let Some(terms) = periodic_terms(series, look) {
        let is_whole = terms.iter().all(|term| term.is_whole);
        let growth = terms.iter().map(|term| periodic_growth(term.sum, term.length)).collect();
        return Some(State::Grows { growth, is_whole });
    }
    if let Some(increment) = constant_increment(series, look) {
        return Some(State::grows(increasing_growth(series, increment, look), true));
    }
    let count = exact_period(blocks, look)?;
    if accelerates(series, count.length, look) {
        let increment = Increment { length: count.length, more: 0 };
        return Some(State::grows(increasing_growth(series, increment, look), count.is_whole));
    }
    let quarter = &series[series.len() / 4..];
    let bytes: i128 = quarter.iter().copied().map(i128::from).sum();
    // Only whole periods are counted, so that each phase counts equally often.
    let entries = quarter.len() / count.length * count.length;
    let over: i128 = quarter[..quarter.len() - entries].iter().copied().map(i128::from).sum();
    let rate = Rate::new((bytes - over).unsigned_abs(), entries as u128, Certainty::Counted);
    let pattern = PartPattern::Counted {
        period: count.length as u32,
        blocks: u64::try_from(count.sum).unwrap_or(u64::MAX),
    };
    Some(State::grows(PatternGrowth { rate, pattern, is_replaced: false }, count.is_whole))
}

pub(super) fn periodic_growth(sum: i128, length: usize) -> PatternGrowth {
    PatternGrowth {
        rate: Rate::new(sum.unsigned_abs(), length as u128, Certainty::Exact),
        pattern: PartPattern::Exact { period: length as u32 },
        is_replaced: false,
    }
}

/// The rate is the mean of the measured iterations.
pub(super) fn increasing_growth(series: &[i64], by: Increment, look: &Look) -> PatternGrowth {
    let measured = measured(series, look);
    let bytes: i128 = measured.iter().copied().map(i128::from).sum();
    PatternGrowth {
        rate: Rate::new(bytes.max(0).unsigned_abs(), measured.len() as u128, Certainty::Growing),
        pattern: PartPattern::Growing { period: by.length as u32, more: by.more.unsigned_abs() },
        is_replaced: false,
    }
}

/// The measured iterations. If they add nothing, as many from the first on that does.
fn measured<'a>(series: &'a [i64], look: &Look) -> &'a [i64] {
    let length = look.measured.min(series.len());
    let first = positive(series).next().unwrap_or(0);
    let from = if first < length { 0 } else { first.min(series.len() - length) };
    &series[from..from + length]
}

fn mean_growth(series: &[i64]) -> PatternGrowth {
    PatternGrowth {
        rate: mean(series, Certainty::Mean),
        pattern: PartPattern::Mean,
        is_replaced: false,
    }
}

#[cfg(test)]
mod tests;
