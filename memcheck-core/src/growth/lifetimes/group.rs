//! The series of a group of kinds, from the first measured iteration on.

use super::events::{Events, Look};
use super::history::History;
use super::kind::{FEW_BIRTHS, Kind, add_from, is_longer};

/// Differences of two values and sums of many must not overflow.
const HIGHEST: u64 = 1 << 60;

/// Kinds that are judged together. All series have one value for each entry.
#[derive(Debug, Clone)]
pub(super) struct KindGroup {
    /// Bytes of the blocks that were born in an entry and outlived their iteration.
    pub(super) born: Vec<i64>,
    /// Bytes born in an entry that are live now.
    pub(super) left: Vec<i64>,
    pub(super) blocks: Vec<i64>,
    pub(super) live: Vec<i64>,
    /// The number of live blocks at the end of an entry.
    pub(super) live_blocks: Vec<i64>,
    /// The size of the largest block that was born in an entry; `None` if a kind has several sizes.
    pub(super) largest: Option<Vec<i64>>,
    /// The greatest age at death, in entries; 0 if no block died.
    pub(super) age: usize,
    pub(super) ages: Events,
    /// The same in time, of a run with a clock.
    pub(super) lifetimes: Option<TimesAlive>,
    /// Live bytes of blocks that were born before the first entry and never died. `None` if an entry
    /// stands for several iterations, because `born` then has blocks that died within their entry.
    pub(super) older: Option<i64>,
}

impl KindGroup {
    pub(super) fn new(history: &History, kinds: &[&Kind]) -> Self {
        let start = history.start();
        let length = history.entries().saturating_sub(start);
        let sum = |add: &dyn Fn(&Kind, &mut [u64])| -> Vec<i64> {
            let mut sum = vec![0u64; length];
            kinds.iter().for_each(|kind| add(kind, &mut sum));
            sum.into_iter().map(|value| value.min(HIGHEST).cast_signed()).collect()
        };
        let born = sum(&|kind, sum| {
            let (tally, factor) = kind.in_bytes();
            add_from(&tally.births, kind.from, factor, start, sum);
        });
        let left = sum(&|kind, sum| {
            let (tally, factor) = kind.in_bytes();
            add_from(&tally.left, kind.from, factor, start, sum);
        });
        let blocks = sum(&|kind, sum| add_from(&kind.blocks.left, kind.from, 1, start, sum));
        let live = sum(&|kind, sum| kind.add_live(sum, start));
        let live_blocks = sum(&|kind, sum| add_from(&kind.blocks.live, kind.from, 1, start, sum));
        let largest = largest(kinds, start, length);
        let (age, ages) = ages(kinds, start);
        let lifetimes = TimesAlive::new(history, kinds);
        let within = lifetimes.map_or(0, |lifetimes| history.entries_within(lifetimes.longest));
        let age = age.max(within.min(length));
        let measured = left.iter().fold(0i64, |sum, &left| sum.saturating_add(left));
        let older = (history.epoch() == 1)
            .then(|| live.last().copied().unwrap_or(0).saturating_sub(measured));
        Self { born, left, blocks, live, live_blocks, largest, age, ages, lifetimes, older }
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    /// Births before this entry are settled: their live blocks are older than any block that died.
    pub(super) fn settled(&self) -> usize {
        self.len().saturating_sub(self.age)
    }

    /// The entries at whose end no block of an earlier entry was live, except for those that have
    /// settled and those that have been live since before the first entry.
    pub(super) fn emptied(&self) -> Vec<usize> {
        let Some(mut stays) = self.older else { return Vec::new() };
        let settled = self.settled();
        let mut emptied = Vec::new();
        for (at, (&born, &live)) in self.born.iter().zip(&self.live).enumerate() {
            if live == stays.saturating_add(born) {
                emptied.push(at);
            }
            if at < settled {
                stays = stays.saturating_add(self.left[at]);
            }
        }
        emptied
    }

    pub(super) fn without_settled(&self) -> Self {
        let settled = self.settled();
        let without = |level: &[i64], left: &[i64]| -> Vec<i64> {
            let mut stays = 0i64;
            let levels = left.iter().zip(level).take(settled).map(|(&left, &live)| {
                stays = stays.saturating_add(left);
                live.saturating_sub(stays)
            });
            levels.collect()
        };
        let born = self.born.iter().zip(&self.left).take(settled);
        Self {
            born: born.map(|(born, left)| born - left).collect(),
            left: vec![0; settled],
            blocks: vec![0; settled],
            live: without(&self.live, &self.left),
            live_blocks: without(&self.live_blocks, &self.blocks),
            largest: self.largest.as_ref().map(|largest| largest[..settled].to_vec()),
            age: 0,
            ages: self.ages,
            lifetimes: self.lifetimes,
            older: self.older,
        }
    }
}

fn ages(kinds: &[&Kind], start: usize) -> (usize, Events) {
    let mut rises: Vec<(u32, u32)> =
        kinds.iter().flat_map(|kind| kind.rises.iter().copied()).collect();
    rises.sort_unstable();
    let (mut oldest, mut steps) = (0, Vec::new());
    for (entry, age) in rises {
        if age > oldest {
            steps.push(((entry as usize).saturating_sub(start), i64::from(age - oldest)));
            oldest = age;
        }
    }
    (oldest as usize, Events::from_steps(&steps))
}

/// How long blocks have lived, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimesAlive {
    /// The longest time, and as much as that can be more without a rise.
    longest: u64,
    /// The rises of the longest time.
    rises: Events,
    /// The time of the whole run.
    run: u64,
}

impl TimesAlive {
    /// A run of so many of the longest lifetimes shows whether it rises.
    const LEAST: u64 = 8;

    /// `None` if the run has no clock, or if no block has lived for a time.
    fn new(history: &History, kinds: &[&Kind]) -> Option<Self> {
        let mut rises: Vec<(u32, u64)> =
            kinds.iter().flat_map(|kind| kind.time_rises.iter().copied()).collect();
        rises.sort_unstable();
        let (mut longest, mut steps) = (0, Vec::new());
        for (entry, time) in rises {
            if is_longer(time, longest) {
                steps.push((
                    (entry as usize).saturating_sub(history.start()),
                    time.min(HIGHEST).cast_signed(),
                ));
                longest = time;
            }
        }
        let longest = longest + longest / 8;
        (longest > 0).then(|| Self {
            longest,
            rises: Events::from_steps(&steps),
            run: history.time(),
        })
    }

    /// True if blocks do not live longer and longer: in a backlog, each waits longer than the one before.
    pub(super) fn are_bounded(&self, until: usize, look: &Look) -> bool {
        self.run >= Self::LEAST * self.longest && self.rises.is_quiet(until, look)
    }
}

fn largest(kinds: &[&Kind], start: usize, length: usize) -> Option<Vec<i64>> {
    let mut largest = vec![0; length];
    for kind in kinds {
        if kind.bytes.is_some() {
            return None;
        }
        let size = kind.size.min(HIGHEST).cast_signed();
        let births = kind.blocks.births.iter().enumerate().filter(|&(_, &births)| births > 0);
        for entry in births.filter_map(|(at, _)| (kind.from + at).checked_sub(start)) {
            largest.get_mut(entry).into_iter().for_each(|largest| *largest = size.max(*largest));
        }
    }
    Some(largest)
}

pub(super) fn has_few_births(kind: &Kind) -> bool {
    kind.birth_entries() < FEW_BIRTHS
}

/// True if the kind cannot change a verdict: no measured block lives, the count is unchanged.
pub(super) fn is_unchanged(history: &History, kind: &Kind) -> bool {
    kind.is_flat(history.start(), history.entries())
}
