//! The events of a series, and the longest wait for another one if growth goes on. Growth that goes
//! on *promises* another event within [`Events::longest_wait`] entries; a group is quiet once the
//! promise is broken.

use super::decision::Budget;

/// The assumptions of a look, in entries of the series.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// Bounded memory has filled, or was emptied once, within this number of entries.
    pub(super) horizon: usize,
    /// A leak has at least one event in this number of entries.
    pub(super) quiet: usize,
    /// With the budget spent, weaker evidence must suffice, because there is no further look.
    pub(super) is_last: bool,
    /// The entries of the measured iterations.
    pub(super) measured: usize,
}

impl Look {
    /// A look at a series of which an entry stands for `epoch` iterations.
    pub(super) fn new(budget: &Budget, done: u32, epoch: u32) -> Self {
        Self {
            horizon: budget.horizon.max(1) as usize,
            quiet: budget.quiet.max(1) as usize,
            is_last: done >= budget.most,
            measured: (budget.measured / epoch.max(1)).max(1) as usize,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Events {
    pub(super) count: usize,
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) longest: usize,
    /// No event of the second half is larger than all of the first. If the capacity of a buffer is
    /// multiplied, each event is larger than those before.
    pub(super) is_even: bool,
}

impl Events {
    /// The entries `at` must be in ascending order.
    pub(super) fn from_entries(at: impl IntoIterator<Item = usize>) -> Self {
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

    /// Events of some size, in ascending order of their entries.
    pub(super) fn from_steps(steps: &[(usize, i64)]) -> Self {
        let (first, second) = steps.split_at(steps.len() / 2);
        let largest = |steps: &[(usize, i64)]| steps.iter().map(|&(_, size)| size).max();
        let is_even = !first.is_empty() && largest(second) <= largest(first);
        Self { is_even, ..Self::from_entries(steps.iter().map(|&(at, _)| at)) }
    }

    pub(super) fn above_zero(series: &[i64]) -> Self {
        Self::from_entries(positive(series))
    }

    pub(super) fn longest_wait(&self, look: &Look) -> usize {
        // The factor is 2.2, because the distance doubles if a buffer's capacity doubles. At the last
        // look, 1.5 is enough for events that do not get larger.
        let tenths = if look.is_last && self.is_even { 15 } else { 22 };
        look.quiet.max(self.longest * tenths / 10 + 1)
    }

    /// There must be no further event before entry `until`.
    pub(super) fn is_quiet(&self, until: usize, look: &Look) -> bool {
        until.saturating_sub(self.last) > self.longest_wait(look)
    }

    pub(super) fn quiet_from(&self, look: &Look) -> usize {
        self.last + self.longest_wait(look) + 1
    }
}

pub(super) fn positive(series: &[i64]) -> impl Iterator<Item = usize> + '_ {
    series.iter().enumerate().filter(|&(_, &value)| value > 0).map(|(at, _)| at)
}

/// True if events go on through the last `horizon` entries: at most two fifths of the horizon apart,
/// and neither end empty for more than 1.5 times the longest distance. Three times the longest wait for
/// an event of a leak must have at least three.
pub(super) fn continues(series: &[i64], look: &Look) -> bool {
    continues_after(series, 0, look)
}

/// The same for events at random, whose longest distance is that of the whole series: in 3 of 1,000
/// leaks that allocate in 20 to 50 % of the iterations, the window has only shorter ones.
pub(super) fn continues_at_random(series: &[i64], look: &Look) -> bool {
    continues_after(series, Events::above_zero(series).longest, look)
}

/// `longest` is a distance between events that was seen elsewhere.
fn continues_after(series: &[i64], longest: usize, look: &Look) -> bool {
    let Some(begin) = series.len().checked_sub(look.horizon) else { return false };
    let window = &series[begin..];
    let longer = &series[series.len().saturating_sub(look.horizon.max(3 * look.quiet))..];
    let events = Events::above_zero(window);
    let longest = longest.max(events.longest);
    let end_is_empty = |entries: usize| 2 * entries > 3 * longest;
    positive(longer).count() >= 3
        && 5 * events.longest <= 2 * look.horizon.max(5)
        && !end_is_empty(events.first)
        && !end_is_empty(window.len() - 1 - events.last)
}

/// Entries higher than ever before, each with its rise above the highest earlier level.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_do_not_get_larger_wait_less_at_the_last_look() {
        let look = Look { horizon: 160, quiet: 64, is_last: false, measured: 10 };
        let last = Look { is_last: true, ..look };
        let waits = |steps: &[(usize, i64)]| {
            let events = Events::from_steps(steps);
            (events.longest_wait(&look), events.longest_wait(&last))
        };
        assert_eq!(waits(&[(10, 8), (20, 8), (120, 8)]), (221, 151));
        assert_eq!(waits(&[(10, 9), (20, 8), (120, 8)]), (221, 151));
        assert_eq!(waits(&[(10, 8), (20, 9), (120, 8)]), (221, 221), "larger");
        assert_eq!(waits(&[(10, 8), (110, 9)]), (221, 221), "larger");
        assert_eq!(waits(&[(10, 8)]), (64, 64));
        let no_sizes = Events::from_entries([10, 20, 120]);
        assert_eq!(no_sizes.longest_wait(&last), 221);
    }
}
