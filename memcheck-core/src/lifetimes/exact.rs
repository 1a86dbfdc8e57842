//! Growth that repeats exactly: periods, sums of periodic terms, and constant increments.

use super::events::{Events, Look};

/// Events that are missing in a row before the first repeat, from which on the growth is taken to
/// have begun there. Fewer may be a pause of irregular growth.
const BEGAN: usize = 8;

/// The most periodic terms that a series is made of.
const MOST_TERMS: usize = 3;

/// The longest period of a term that is looked for below other events.
const LONGEST_BELOW: usize = 16;

/// A series whose end repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    /// Length of the period in entries.
    pub(super) length: usize,
    /// Sum of one period.
    pub(super) sum: i128,
    /// Events before it are not known to have ended.
    pub(super) is_whole: bool,
}

/// What repeats exactly at the end of a series.
pub(super) fn exact(series: &[i64], look: &Look) -> Option<Period> {
    let least = (2 * look.horizon / 5).clamp(1, 64);
    let length = (1..=series.len() / 4).find(|&k| repeats(series, k, (3 * k).max(least)))?;
    let compared = (3 * length).max(least);
    let sum: i128 = series[series.len() - length..].iter().copied().map(i128::from).sum();
    if sum <= 0 {
        return None;
    }
    let begin = begin_of(series, length);
    let is_long = series.len() - begin >= 4 * compared;
    let others = before(series, length, begin, is_long)?;
    let is_whole = others.count == 0 || others.is_quiet(series.len(), look);
    Some(Period { length, sum, is_whole })
}

/// True if the last `compared` values equal those one period before.
fn repeats(series: &[i64], period: usize, compared: usize) -> bool {
    compared + period <= series.len()
        && (series.len() - compared..series.len()).rev().all(|at| series[at] == series[at - period])
}

/// The entry from which on the series repeats.
fn begin_of(series: &[i64], period: usize) -> usize {
    let mut begin = series.len() - period;
    while begin > 0 && series[begin - 1] == series[begin - 1 + period] {
        begin -= 1;
    }
    begin
}

/// Events that are not of the period, before it begins. `None` if a part of the period itself
/// paused right before, so that it repeats by chance.
fn before(series: &[i64], period: usize, begin: usize, is_long: bool) -> Option<Events> {
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
            if missing == BEGAN {
                break;
            }
        }
    }
    let is_other = |&at: &usize| series[at] > if at >= began { expected(at).max(0) } else { 0 };
    Some(Events::of((0..begin).filter(is_other)))
}

/// Periodic terms that leave nothing of the end of a series: their lengths and sums.
pub(super) fn terms(series: &[i64], look: &Look) -> Option<Vec<Period>> {
    let longer = [series.len(), look.horizon];
    longer.into_iter().find_map(|length| {
        let end = &series[series.len().checked_sub(length)?..];
        let terms = terms_of(end)?;
        let others = Events::above_zero(&series[..series.len() - length]);
        let is_whole = length == series.len() || others.count == 0 || {
            // The terms explain at least the same events before the window, so that what is
            // open there is open here.
            terms_explain(series, length, &terms)
        };
        Some(terms.into_iter().map(|term| Period { is_whole, ..term.period }).collect())
    })
}

/// One term: so many bytes in every entry of one phase.
#[derive(Debug, Clone, Copy)]
struct Term {
    period: Period,
    /// Entries from the end of the series to the last event.
    phase: usize,
}

fn terms_of(series: &[i64]) -> Option<Vec<Term>> {
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

/// True if the terms leave nothing before the last `length` entries that they did not begin after.
fn terms_explain(series: &[i64], length: usize, terms: &[Term]) -> bool {
    let before = series.len() - length;
    (0..before).all(|at| {
        let from_end = series.len() - 1 - at;
        let matching = terms.iter().filter(|term| from_end % term.period.length == term.phase);
        let most: i128 = matching.map(|term| term.period.sum).sum();
        i128::from(series[at]) <= most
    })
}

/// Growth by a constant increment: the period, and the increment of one period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Increment {
    pub(super) length: usize,
    pub(super) more: i64,
}

/// `series[i] - series[i - k]` is constant and positive at the end, or zero and positive in turn.
pub(super) fn quadratic(series: &[i64], look: &Look) -> Option<Increment> {
    let least = (2 * look.horizon / 5).clamp(1, 64);
    (1..=series.len() / 4).find_map(|length| {
        let compared = (3 * length).max(least);
        if compared + length > series.len() {
            return None;
        }
        let last = series.len() - 1;
        let rise = |at: usize| series[at] - series[at - length];
        // Entries of a period without an event stay without one.
        let more = (0..length).map(|at| rise(last - at)).find(|&more| more != 0)?;
        let is_even = |at: usize| rise(at) == more || (series[at] == 0 && series[at - length] == 0);
        let all = (series.len() - compared..series.len()).rev().all(is_even);
        (more > 0 && all).then_some(Increment { length, more })
    })
}

/// Takes off what is in some phases of a period always, below other events: the periods taken
/// off. `None` if there is nothing of that kind.
pub(super) fn below(series: &mut [i64], look: &Look) -> Option<Period> {
    let begin = series.len().saturating_sub(look.horizon);
    let (period, least) = (1..=LONGEST_BELOW.min(look.horizon / 8)).find_map(|length| {
        let least = phases(&series[begin..], length)?;
        Some((length, least))
    })?;
    for (back, value) in series.iter_mut().rev().enumerate() {
        *value = (*value - least[back % period]).max(0);
    }
    let sum = least.iter().copied().map(i128::from).sum();
    Some(Period { length: period, sum, is_whole: true })
}

/// What each phase has always, counted from the end, if half of the time it has just that, and
/// if the phases that lack it sometimes are empty at least half of the time.
fn phases(series: &[i64], length: usize) -> Option<Vec<i64>> {
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
