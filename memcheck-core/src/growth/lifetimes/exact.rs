//! Growth that repeats exactly: periods, sums of periodic terms, and constant increments.

use super::events::{Events, Look};

/// Fewer missing events in a row may be a pause of irregular growth and not a late beginning.
const MAX_MISSING: usize = 8;

/// With enough terms, every series is a sum of periodic ones.
const MOST_TERMS: usize = 3;

const MAX_REGULAR_PERIOD: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    /// Length of the period in entries.
    pub(super) length: usize,
    pub(super) sum: i128,
    /// False if other events before the repetition may still go on.
    pub(super) is_whole: bool,
}

/// The end of a series that repeats exactly, with a sum above zero.
struct Repetition {
    length: usize,
    compared: usize,
    begin: usize,
    sum: i128,
}

impl Repetition {
    fn is_below(&self, other: &Self) -> bool {
        let per_entry = |sum: i128, of: usize| sum * of as i128;
        per_entry(self.sum, other.length) < per_entry(other.sum, self.length)
    }
}

fn repetition(series: &[i64], look: &Look) -> Option<Repetition> {
    // A period counts once it has repeated three times, and in at least this number of entries.
    let least = (2 * look.horizon / 5).clamp(1, 64);
    let length = (1..=series.len() / 4).find(|&k| repeats(series, k, (3 * k).max(least)))?;
    let sum: i128 = series[series.len() - length..].iter().copied().map(i128::from).sum();
    let begin = first_repeat(series, length);
    (sum > 0).then(|| Repetition { length, compared: (3 * length).max(least), begin, sum })
}

/// The shortest period with which the end of a series repeats exactly, if its sum is positive.
pub(super) fn exact_period(series: &[i64], look: &Look) -> Option<Period> {
    let now = repetition(series, look)?;
    let Repetition { length, compared, begin, sum } = now;
    let is_long = series.len() - begin >= 4 * compared;
    let (began, others) = other_events(series, length, begin, is_long)?;
    let is_early = began <= look.quiet;
    if others.count == 0 || is_early {
        let is_whole = others.count == 0 || others.is_quiet(series.len(), look);
        return Some(Period { length, sum, is_whole });
    }
    // A leak begins early. If this one seems to begin later, after other events, then memory that
    // stayed for longer than ever before may have been added to a leak that began with them.
    let before = repetition(&series[..began], look).filter(|before| before.is_below(&now));
    let Repetition { length, sum, .. } = before.unwrap_or(now);
    Some(Period { length, sum, is_whole: false })
}

/// The length at which a series whose end repeats exactly has done so for a horizon. Regular growth
/// that has paused is exact from there on. `None` if the end does not repeat, or has for as long.
pub(super) fn exact_from(series: &[i64], look: &Look) -> Option<usize> {
    let from = repetition(series, look)?.begin + look.horizon;
    (from > series.len()).then_some(from)
}

fn repeats(series: &[i64], period: usize, compared: usize) -> bool {
    compared + period <= series.len()
        && (series.len() - compared..series.len()).rev().all(|at| series[at] == series[at - period])
}

fn first_repeat(series: &[i64], period: usize) -> usize {
    let mut begin = series.len() - period;
    while begin > 0 && series[begin - 1] == series[begin - 1 + period] {
        begin -= 1;
    }
    begin
}

/// Events before `begin` outside of the period. `None` if the period paused right before `begin`,
/// so that the series repeats by chance, unless a long repetition outweighs the pause.
fn other_events(
    series: &[i64],
    period: usize,
    begin: usize,
    is_long: bool,
) -> Option<(usize, Events)> {
    let (mut missing, mut began) = (0, begin);
    let expected = |at: usize| series[begin + (period - 1 - (begin - 1 - at) % period)];
    for at in (0..begin).rev() {
        let value = expected(at);
        if value <= 0 {
            continue;
        }
        if series[at] >= value {
            if missing > 0 && !is_long {
                return None;
            }
            (missing, began) = (0, at);
        } else {
            missing += 1;
            if missing == MAX_MISSING {
                break;
            }
        }
    }
    let is_other = |&at: &usize| series[at] > if at >= began { expected(at).max(0) } else { 0 };
    Some((began, Events::from_entries((0..begin).filter(is_other))))
}

/// Periodic terms whose sum is the whole series, or else its last `horizon` entries.
pub(super) fn periodic_terms(series: &[i64], look: &Look) -> Option<Vec<Period>> {
    let longer = [series.len(), look.horizon];
    longer.into_iter().find_map(|length| {
        let end = &series[series.len().checked_sub(length)?..];
        let terms = decompose(end)?;
        let others = Events::above_zero(&series[..series.len() - length]);
        let is_whole = length == series.len() || others.count == 0 || {
            // If an earlier entry has more than the terms, other events may still go on.
            terms_explain(series, length, &terms)
        };
        Some(terms.into_iter().map(|term| Period { is_whole, ..term.period }).collect())
    })
}

#[derive(Debug, Clone, Copy)]
struct Term {
    period: Period,
    /// Entries from the end of the series to the last event.
    phase: usize,
}

fn decompose(series: &[i64]) -> Option<Vec<Term>> {
    let mut rest = series.to_vec();
    let mut terms = Vec::new();
    for length in 1..=series.len() / 4 {
        for phase in 0..length {
            let least = rest.iter().rev().skip(phase).step_by(length).min().copied().unwrap_or(0);
            if least <= 0 {
                continue;
            }
            if terms.len() == MOST_TERMS {
                return None;
            }
            rest.iter_mut().rev().skip(phase).step_by(length).for_each(|value| *value -= least);
            let period = Period { length, sum: i128::from(least), is_whole: true };
            terms.push(Term { period, phase });
        }
        if rest.iter().all(|&value| value == 0) {
            return (!terms.is_empty()).then_some(terms);
        }
    }
    None
}

/// Earlier entries can have less than the terms, because a term may have begun later.
fn terms_explain(series: &[i64], length: usize, terms: &[Term]) -> bool {
    let before = series.len() - length;
    (0..before).all(|at| {
        let from_end = series.len() - 1 - at;
        let matching = terms.iter().filter(|term| from_end % term.period.length == term.phase);
        let most: i128 = matching.map(|term| term.period.sum).sum();
        i128::from(series[at]) <= most
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Increment {
    pub(super) length: usize,
    /// Bytes that each period has more than the one before; 0 if this number is not constant.
    pub(super) more: i64,
}

/// Fewer periods each of which has more than the one before can be chance.
const MIN_RISING_PERIODS: usize = 8;

/// Finds a period `k` for which `series[i] - series[i - k]` is constant and positive at the end of
/// the series. Phases without events are left out of the comparison.
pub(super) fn constant_increment(series: &[i64], look: &Look) -> Option<Increment> {
    let least = (2 * look.horizon / 5).clamp(1, 64);
    (1..=series.len() / 4).find_map(|length| {
        let compared = (3 * length).max(least);
        if compared + length > series.len() {
            return None;
        }
        let last = series.len() - 1;
        let rise = |at: usize| series[at] - series[at - length];
        let more = (0..length).map(|at| rise(last - at)).find(|&more| more != 0)?;
        let is_empty = |at: usize| series[at] == 0 && series[at - length] == 0;
        let is_even = |at: usize| {
            // Each phase rises in all compared periods or in none.
            let latest = last - (last - at) % length;
            if is_empty(latest) { is_empty(at) } else { rise(at) == more }
        };
        let all = (series.len() - compared..series.len()).rev().all(is_even);
        let phases = (0..length).filter(|at| !is_empty(last - at)).count();
        (more > 0 && all).then(|| Increment { length, more: more.saturating_mul(phases as i64) })
    })
}

/// True if each period of this length has more than the one before through the last `horizon`.
pub(super) fn accelerates(series: &[i64], length: usize, look: &Look) -> bool {
    let compared = look.horizon.max(MIN_RISING_PERIODS * length) / length * length;
    let Some(begin) = series.len().checked_sub(compared) else { return false };
    let sums: Vec<i128> = series[begin..]
        .chunks(length)
        .map(|period| period.iter().copied().map(i128::from).sum())
        .collect();
    sums.windows(2).all(|pair| pair[0] < pair[1])
}

/// Subtracts a regular term that other events hide: the shortest period whose [`lowest_by_phase`]
/// over the last `horizon` entries have a value above zero.
pub(super) fn subtract_regular_term(series: &mut [i64], look: &Look) -> Option<Period> {
    let begin = series.len().saturating_sub(look.horizon);
    // Each phase must have at least eight values there, whose lowest is not above zero by chance.
    let (period, least) = (1..=MAX_REGULAR_PERIOD.min(look.horizon / 8)).find_map(|length| {
        let least = lowest_by_phase(&series[begin..], length)?;
        Some((length, least))
    })?;
    for (back, value) in series.iter_mut().rev().enumerate() {
        *value = (*value - least[back % period]).max(0);
    }
    let sum = least.iter().copied().map(i128::from).sum();
    Some(Period { length: period, sum, is_whole: true })
}

/// The lowest value of each phase. `None` if all are zero, or if most entries of one exceed it.
fn lowest_by_phase(series: &[i64], length: usize) -> Option<Vec<i64>> {
    let mut least = Vec::with_capacity(length);
    for phase in 0..length {
        let values = || series.iter().rev().skip(phase).step_by(length);
        let lowest = values().min().copied()?;
        let (equal, all) = (values().filter(|&&value| value == lowest).count(), values().count());
        if 2 * equal < all {
            return None;
        }
        least.push(lowest);
    }
    least.iter().any(|&lowest| lowest > 0).then_some(least)
}

#[cfg(test)]
mod tests;
