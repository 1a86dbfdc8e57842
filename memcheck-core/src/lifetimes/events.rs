//! Events of a series, and the promise that growth repeats within a time that they give.

/// The assumptions of a look, in entries of the series.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// What is bounded has filled, or was emptied once, within so many entries.
    pub(super) horizon: usize,
    /// What leaks does so at least once in so many entries.
    pub(super) quiet: usize,
    /// The budget is spent, so that less evidence must do.
    pub(super) is_last: bool,
}

/// Events of a series: when the first and last were, and the longest distance between two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Events {
    pub(super) count: usize,
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) longest: usize,
}

impl Events {
    /// The entries of `at`, in ascending order.
    pub(super) fn of(at: impl IntoIterator<Item = usize>) -> Self {
        let mut events = Self::default();
        for entry in at {
            if events.count == 0 {
                events.first = entry;
            } else {
                events.longest = events.longest.max(entry - events.last);
            }
            events.last = entry;
            events.count += 1;
        }
        events
    }

    /// Entries of the series with a value above zero.
    pub(super) fn above_zero(series: &[i64]) -> Self {
        Self::of(positive(series))
    }

    /// How long after the last event growth must have gone on, if it does at all.
    pub(super) fn need(&self, look: &Look) -> usize {
        // 2.2 x, because the distance doubles where a buffer's capacity does.
        look.quiet.max(self.longest * 11 / 5 + 1)
    }

    /// True if the promise is broken by entry `until`, before which there was no further event.
    pub(super) fn is_quiet(&self, until: usize, look: &Look) -> bool {
        until.saturating_sub(self.last) > self.need(look)
    }

    /// The number of entries from which on the promise is broken.
    pub(super) fn quiet_from(&self, look: &Look) -> usize {
        self.last + self.need(look) + 1
    }
}

/// The entries with a value above zero.
pub(super) fn positive(series: &[i64]) -> impl Iterator<Item = usize> + '_ {
    series.iter().enumerate().filter(|&(_, &value)| value > 0).map(|(at, _)| at)
}

/// True if events go on through the last H entries of the series.
pub(super) fn persists(series: &[i64], look: &Look) -> bool {
    let Some(begin) = series.len().checked_sub(look.horizon) else { return false };
    let window = &series[begin..];
    let events = Events::above_zero(window);
    let end_is_empty = |entries: usize| 2 * entries > 3 * events.longest;
    events.count >= 3
        && 5 * events.longest <= 2 * look.horizon.max(5)
        && !end_is_empty(events.first)
        && !end_is_empty(window.len() - 1 - events.last)
}

/// Entries in which the level is higher than ever before, with the rise.
pub(super) fn records(level: &[i64]) -> Vec<(usize, i64)> {
    let mut records = Vec::new();
    let mut highest = level.first().copied().unwrap_or(0);
    for (at, &live) in level.iter().enumerate() {
        if live > highest {
            records.push((at, live - highest));
            highest = live;
        }
    }
    records
}
