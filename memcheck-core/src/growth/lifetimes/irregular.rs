//! Growth in irregular iterations, and how it differs from a cache that fills at random.

use super::events::{Events, Look};
use super::rate::{Certainty, Rate};

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
    // to 84 %, which has 0.4 of them.
    let (ratio, enough) = if look.is_last { (0.4, 2.33) } else { (0.607, 3.1) };
    let (first, second) = series.split_at(series.len() / 2);
    let (first, second) = (Half::new(first), Half::new(second));
    if first.events + second.events < MIN_EVENTS as f64 || first.events < 1.0 {
        return false;
    }
    let deviation = (second.share_variance() + ratio * ratio * first.share_variance()).sqrt();
    let is_frequent = second.share() - ratio * first.share() >= enough * deviation;
    let declines = second.mean < first.mean / 2.0
        || second.mean < first.mean - 2.0 * (first.error + second.error).sqrt();
    is_frequent && !declines
}

struct Half {
    entries: f64,
    events: f64,
    /// Mean bytes of an entry.
    mean: f64,
    /// The squared standard error of the mean.
    error: f64,
}

impl Half {
    fn new(series: &[i64]) -> Self {
        let entries = series.len().max(1) as f64;
        let events = series.iter().filter(|&&value| value > 0).count() as f64;
        let mean = series.iter().map(|&value| value as f64).sum::<f64>() / entries;
        let square = |&value: &i64| (value as f64 - mean) * (value as f64 - mean);
        let error = series.iter().map(square).sum::<f64>() / (entries * entries);
        Self { entries, events, mean, error }
    }

    fn share(&self) -> f64 {
        self.events / self.entries
    }

    fn share_variance(&self) -> f64 {
        self.share() * (1.0 - self.share()) / self.entries
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
        let look = Look { horizon: 6, quiet: 6, is_last: false };
        assert!(is_undiminished(&[8; 16], &look));
        for events in [2, 8, 15] {
            assert!(!is_undiminished(&vec![8; events], &look), "{events}");
        }
    }
}
