//! One kind of blocks over time: births, the births that are still live, and the level.

use serde::{Deserialize, Serialize};

use super::runs;

/// A kind with births in fewer entries than this cannot show a rhythm.
pub(super) const FEW_BIRTHS: usize = 3;

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Of blocks live at the end of their iteration, by entry. Trailing zeros can be absent.
    #[serde(rename = "b", with = "runs")]
    pub(super) births: Vec<u64>,
    #[serde(rename = "x", with = "runs")]
    pub(super) left: Vec<u64>,
    /// The level at the end of each entry, including blocks of the set-up.
    #[serde(rename = "l", with = "runs")]
    pub(super) live: Vec<u64>,
    #[serde(rename = "n")]
    pub(super) now: u64,
}

/// Blocks of one size and one call site, or the blocks of all kinds that share one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kind {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) site: Option<u32>,
    /// Bytes of a block; 0 if sizes differ.
    pub(super) size: u64,
    pub(super) from: usize,
    pub(super) blocks: Tally,
    /// Bytes, for the shared kind only: otherwise they are `blocks` times `size`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<Tally>,
    /// The entries in which the greatest age at death rose, each with the new age in entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rises: Vec<(u32, u32)>,
    /// The same in microseconds, with rises of at least an eighth. Empty unless the run has a clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) time_rises: Vec<(u32, u64)>,
}

impl Tally {
    fn birth(&mut self, entry: Option<usize>, amount: u64) {
        self.now = self.now.saturating_add(amount);
        if let Some(at) = entry {
            for series in [&mut self.births, &mut self.left] {
                if series.len() <= at {
                    series.resize(at + 1, 0);
                }
                series[at] = series[at].saturating_add(amount);
            }
        }
    }

    fn death(&mut self, entry: Option<usize>, amount: u64) {
        self.now = self.now.saturating_sub(amount);
        if let Some(left) = entry.and_then(|at| self.left.get_mut(at)) {
            *left = left.saturating_sub(amount);
        }
    }

    pub(super) fn set_up(&self) -> u64 {
        let left = self.left.iter().fold(0u64, |sum, &left| sum.saturating_add(left));
        self.now.saturating_sub(left)
    }

    fn merge(&mut self, from: usize) {
        self.births = pairs(&self.births, from, u64::saturating_add);
        self.left = pairs(&self.left, from, u64::saturating_add);
        self.live = pairs(&self.live, from, |_, last| last);
    }

    /// The series of `other` begin `later` entries after these.
    fn add(&mut self, other: &Self, later: usize, factor: u64) {
        let add = |own: &mut Vec<u64>, other: &[u64]| {
            if own.len() < later + other.len() {
                own.resize(later + other.len(), 0);
            }
            for (sum, value) in own[later..].iter_mut().zip(other) {
                *sum = sum.saturating_add(value.saturating_mul(factor));
            }
        };
        add(&mut self.births, &other.births);
        add(&mut self.left, &other.left);
        add(&mut self.live, &other.live);
        self.now = self.now.saturating_add(other.now.saturating_mul(factor));
    }
}

impl Kind {
    pub(super) fn new(site: Option<u32>, size: u64, from: usize) -> Self {
        let blocks = Tally::default();
        Self { site, size, from, blocks, bytes: None, rises: Vec::new(), time_rises: Vec::new() }
    }

    pub(super) fn shared(now: usize) -> Self {
        let mut kind = Self { bytes: Some(Tally::default()), ..Self::new(None, 0, 0) };
        kind.blocks.live.resize(now, 0);
        kind.bytes.iter_mut().for_each(|bytes| bytes.live.resize(now, 0));
        kind
    }

    pub(super) fn key(&self) -> (Option<u32>, u64) {
        (self.site, self.size)
    }

    pub(super) fn birth_entries(&self) -> usize {
        self.blocks.births.iter().filter(|&&births| births > 0).take(FEW_BIRTHS).count()
    }

    /// Adds `count` blocks that have become live. `entry` is `None` for blocks of the set-up.
    pub(super) fn born(&mut self, entry: Option<usize>, count: u64, size: u64, now: usize) {
        let entry = entry.map(|entry| entry.max(self.from).min(now) - self.from);
        self.blocks.birth(entry, count);
        if let Some(bytes) = &mut self.bytes {
            bytes.birth(entry, count.saturating_mul(size));
        }
    }

    pub(super) fn died(&mut self, entry: Option<usize>, count: u64, size: u64, now: usize) {
        let place = entry.map(|entry| entry.max(self.from) - self.from);
        self.blocks.death(place, count);
        if let Some(bytes) = &mut self.bytes {
            bytes.death(place, count.saturating_mul(size));
        }
        let age = entry.map_or(0, |entry| (now - entry.min(now)).max(1));
        if age > self.age() {
            let rise = (now as u32, age as u32);
            match self.rises.last_mut() {
                Some(last) if last.0 == rise.0 => *last = rise,
                _ => self.rises.push(rise),
            }
        }
    }

    /// A block has died at entry `now`, this many microseconds after its birth.
    pub(super) fn lived(&mut self, time: u64, now: usize) {
        let longest = self.time_rises.iter().map(|&(_, time)| time).max().unwrap_or(0);
        if is_longer(time, longest) {
            self.time_rises.push((now as u32, time));
        }
    }

    pub(super) fn age(&self) -> usize {
        self.rises.last().map_or(0, |&(_, age)| age as usize)
    }

    /// Takes blocks and bytes by entry of birth, and both for the set-up, from a census.
    pub(super) fn replace(
        &mut self,
        (left, bytes): (&[u64], &[u64]),
        set_up: (u64, u64),
        now: usize,
        time_since: &dyn Fn(usize) -> u64,
    ) {
        let last = left.len().max(self.from + self.blocks.left.len());
        for entry in self.from..last {
            let value = |series: &[u64], at: usize| series.get(at).copied().unwrap_or(0);
            let (is, was) = (value(left, entry), value(&self.blocks.left, entry - self.from));
            if is == was {
                continue;
            }
            let size = match &self.bytes {
                None => self.size,
                Some(sums) => {
                    let change = value(bytes, entry).abs_diff(value(&sums.left, entry - self.from));
                    change / is.abs_diff(was)
                }
            };
            if is > was {
                self.born(Some(entry), is - was, size, now);
            } else {
                self.died(Some(entry), was - is, size, now);
                self.lived(time_since(entry), now);
            }
        }
        // The division may have rounded, and births may hide deaths, so the census counts.
        if let Some(sums) = &mut self.bytes {
            for (at, left) in sums.left.iter_mut().enumerate() {
                *left = bytes.get(self.from + at).copied().unwrap_or(0);
            }
            sums.now = bytes.iter().fold(set_up.1, |sum, &left| sum.saturating_add(left));
        }
        let was = self.blocks.set_up();
        self.blocks.now = self.blocks.now.saturating_sub(was).saturating_add(set_up.0);
    }

    pub(super) fn end(&mut self, now: usize) {
        for tally in std::iter::once(&mut self.blocks).chain(&mut self.bytes) {
            let length = now.saturating_sub(self.from) + 1;
            tally.live.resize(length, tally.live.last().copied().unwrap_or(0));
            tally.live[length - 1] = tally.now;
        }
    }

    pub(super) fn merge(&mut self) {
        for tally in std::iter::once(&mut self.blocks).chain(&mut self.bytes) {
            tally.merge(self.from);
        }
        self.from /= 2;
        self.set_rises(|rise| (rise.0 / 2, rise.1.div_ceil(2)), Vec::new());
        self.time_rises.iter_mut().for_each(|rise| rise.0 /= 2);
    }

    /// Adds another kind to this shared kind, whose series must begin with entry 0.
    pub(super) fn fold(&mut self, other: &Self) {
        self.blocks.add(&other.blocks, other.from, 1);
        if let Some(bytes) = &mut self.bytes {
            match &other.bytes {
                Some(others) => bytes.add(others, other.from, 1),
                None => bytes.add(&other.blocks, other.from, other.size),
            }
        }
        self.set_rises(|rise| rise, other.rises.clone());
        self.time_rises.extend(&other.time_rises);
    }

    fn set_rises(&mut self, change: impl Fn((u32, u32)) -> (u32, u32), others: Vec<(u32, u32)>) {
        let mut rises: Vec<(u32, u32)> = self.rises.drain(..).chain(others).map(change).collect();
        rises.sort_unstable();
        for (entry, age) in rises {
            if age as usize <= self.age() {
                continue;
            }
            match self.rises.last_mut() {
                Some(last) if last.0 == entry => last.1 = age,
                _ => self.rises.push((entry, age)),
            }
        }
    }

    pub(super) fn is_flat(&self, start: usize, end: usize) -> bool {
        let measured = start.saturating_sub(self.from);
        let none_left = self.blocks.left.iter().skip(measured).all(|&left| left == 0);
        let end = end.saturating_sub(self.from).min(self.blocks.live.len());
        let live = &self.blocks.live[..end];
        let level = live.get(measured.saturating_sub(1)..).unwrap_or(&[]);
        let appeared = self.from >= start && level.iter().any(|&live| live > 0);
        none_left && !appeared && level.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Live bytes of the blocks that iterations have allocated.
    pub(super) fn kept_bytes(&self) -> u64 {
        let (tally, factor) = self.in_bytes();
        tally.now.saturating_sub(tally.set_up()).saturating_mul(factor)
    }

    pub(super) fn add_live(&self, series: &mut [u64], start: usize) {
        let (tally, factor) = self.in_bytes();
        add_from(&tally.live, self.from, factor, start, series);
    }

    /// The series in bytes: a tally, and the factor that its values must be multiplied by.
    pub(super) fn in_bytes(&self) -> (&Tally, u64) {
        self.bytes.as_ref().map_or((&self.blocks, self.size), |bytes| (bytes, 1))
    }

    pub(super) fn footprint(&self) -> usize {
        let tallies = std::iter::once(&self.blocks).chain(&self.bytes);
        let values = tallies
            .map(|tally| tally.births.capacity() + tally.left.capacity() + tally.live.capacity());
        size_of::<Self>()
            + (values.sum::<usize>() + self.rises.capacity() + 2 * self.time_rises.capacity())
                * size_of::<u64>()
    }
}

/// True if a lifetime is longer than the longest so far by more than a clock and a busy machine change it.
pub(super) fn is_longer(time: u64, longest: u64) -> bool {
    time > longest.saturating_add(longest / 8)
}

/// True if `kind` is one of `kinds`, and not only equal to one.
pub(super) fn contains(kinds: &[&Kind], kind: &Kind) -> bool {
    kinds.iter().any(|other| std::ptr::eq(*other, kind))
}

/// `series` begins with entry `from`, and `sum` with entry `start`.
pub(super) fn add_from(series: &[u64], from: usize, factor: u64, start: usize, sum: &mut [u64]) {
    let (skipped, later) = (start.saturating_sub(from), from.saturating_sub(start));
    let (Some(series), Some(sum)) = (series.get(skipped..), sum.get_mut(later..)) else { return };
    for (sum, &value) in sum.iter_mut().zip(series) {
        *sum = sum.saturating_add(value.saturating_mul(factor));
    }
}

fn pairs(series: &[u64], from: usize, merge: impl Fn(u64, u64) -> u64) -> Vec<u64> {
    let odd = (from % 2).min(series.len());
    let (first, rest) = series.split_at(odd);
    let merged = rest.chunks(2).map(|pair| pair.iter().copied().reduce(&merge).unwrap_or(0));
    first.iter().copied().chain(merged).collect()
}
