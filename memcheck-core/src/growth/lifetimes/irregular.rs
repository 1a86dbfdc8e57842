//! Growth in irregular iterations, and how it differs from a cache that fills at random.

use super::events::{Events, Look};
use super::rate::{Certainty, Rate};

/// The mean position of fewer events does not have the normal distribution that the test assumes.
const MIN_EVENTS: usize = 16;

/// True if events go on at a rate that a bounded cache would no longer have. Before the last look
/// the first four fifths must show it too, because several looks give more false alarms.
pub(super) fn irregular(series: &[i64], look: &Look) -> bool {
    if look.is_last {
        return continues(series, look);
    }
    let earlier = &series[..series.len() * 4 / 5];
    earlier.len() >= look.horizon && continues(series, look) && continues(earlier, look)
}

/// True if the events of the series, or of an end of at least `horizon` entries, do not get rarer.
fn continues(series: &[i64], look: &Look) -> bool {
    let begins = [0, series.len() / 4, series.len() / 2];
    begins
        .into_iter()
        .filter(|begin| series.len() - begin >= look.horizon)
        .any(|begin| is_undiminished(&series[begin..], look))
}

fn is_undiminished(series: &[i64], look: &Look) -> bool {
    // A cache that fills to 63 % during the series has exp(-1/2) = 0.607 of the first half's
    // misses in the second half. On the last look it is enough to rule out a cache that fills
    // to 84 %, which has 0.4 of them. `enough` is in standard deviations.
    let (ratio, enough) = if look.is_last { (0.4_f64, 2.85) } else { (0.607, 3.1) };
    let events = series.iter().filter(|&&value| value > 0).count();
    if events < MIN_EVENTS {
        return false;
    }
    let in_cache = Misses::new(events, series.len(), ratio.powf(2.0 / series.len() as f64));
    in_cache.lateness(series) >= enough * in_cache.deviation() && !declines(series)
}

/// The misses of a cache that fills, of which each entry has fewer by the same factor.
struct Misses {
    /// The probability of a miss in each entry.
    shares: Vec<f64>,
    /// The mean position of a miss.
    middle: f64,
}

impl Misses {
    fn new(events: usize, entries: usize, factor: f64) -> Self {
        let weights = std::iter::successors(Some(1.0), |weight| Some(weight * factor));
        let weights: Vec<f64> = weights.take(entries).collect();
        let all: f64 = weights.iter().sum();
        let middle = weights.iter().enumerate().map(|(at, weight)| at as f64 * weight).sum::<f64>();
        let share = |weight: f64| (events as f64 * weight / all).min(1.0);
        Self { shares: weights.into_iter().map(share).collect(), middle: middle / all }
    }

    /// Laplace's test for a trend: how much later the events of the series are than misses.
    fn lateness(&self, series: &[i64]) -> f64 {
        let events = series.iter().enumerate().filter(|&(_, &value)| value > 0);
        events.map(|(at, _)| at as f64 - self.middle).sum()
    }

    /// The standard deviation of the lateness of misses.
    fn deviation(&self) -> f64 {
        let of_entry = |(at, share): (usize, &f64)| {
            let distance = at as f64 - self.middle;
            share * (1.0 - share) * distance * distance
        };
        self.shares.iter().enumerate().map(of_entry).sum::<f64>().sqrt()
    }
}

/// True if the second half has clearly fewer bytes than the first.
fn declines(series: &[i64]) -> bool {
    let (first, second) = series.split_at(series.len() / 2);
    let (first, second) = (Half::new(first), Half::new(second));
    second.mean < first.mean / 2.0
        || second.mean < first.mean - 3.0 * (first.error + second.error).sqrt()
}

struct Half {
    /// Mean bytes of an entry.
    mean: f64,
    /// The squared standard error of the mean.
    error: f64,
}

impl Half {
    fn new(series: &[i64]) -> Self {
        let entries = series.len().max(1) as f64;
        let mean = series.iter().map(|&value| value as f64).sum::<f64>() / entries;
        let square = |&value: &i64| (value as f64 - mean) * (value as f64 - mean);
        let error = series.iter().map(square).sum::<f64>() / (entries * entries);
        Self { mean, error }
    }
}

/// Bytes of all events but the first, divided by the entries from the first event to the last.
pub(super) fn mean(series: &[i64], certainty: Certainty) -> Rate {
    let events = Events::above_zero(series);
    let later = series.get(events.first + 1..).unwrap_or(&[]);
    let bytes: i128 = later.iter().map(|&value| i128::from(value.max(0))).sum();
    Rate::new(bytes.unsigned_abs(), (events.last - events.first) as u128, certainty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_than_16_events_prove_nothing() {
        let look = Look { horizon: 6, quiet: 6, is_last: true, measured: 10 };
        assert!(is_undiminished(&[8; 16], &look));
        for events in [2, 8, 15] {
            assert!(!is_undiminished(&vec![8; events], &look), "{events}");
        }
    }

    #[test]
    fn misses_of_a_cache_get_rarer_and_those_of_a_leak_do_not() {
        for is_last in [false, true] {
            let look = Look { horizon: 160, quiet: 64, is_last, measured: 10 };
            let leak: Vec<i64> = (0..400).map(|at| i64::from(at % 4 == 0)).collect();
            assert!(is_undiminished(&leak, &look));
            // Distances that grow by 3 % each time: 84 % of the events are in the first half.
            let mut next = 0.0;
            let mut distance = 1.0;
            let mut cache = vec![0; 400];
            while next < 400.0 {
                cache[next as usize] = 1;
                next += distance;
                distance *= 1.03;
            }
            assert!(!is_undiminished(&cache, &look));
        }
    }
}
