//! Telling a leak from what only looks like one.
//!
//! The evidence is exact: at the end of the last measured iteration every
//! live block knows the iteration that it was born in, and a census after
//! every iteration says how much was live, and how much of it was old. Blocks
//! are grouped by size, since what leaks once an iteration leaks blocks of one
//! size, or by call site, where sizes may differ. A group is judged on the
//! iterations that its survivors come from (`judge`), and one whose sizes
//! differ also on its level of live bytes (`replaced`).
//!
//! ```text
//! births per iteration   pattern     growth
//! 4 4 4 4 4 4 4 4 4 4    steady      4
//! 0 0 6 0 0 6 0 0 6 0    periodic    2 (6 every 3rd)
//! 1 2 3 4 5 6 7 8 9 10   growing     the mean (1 more each time: quadratic)
//! 1 0 1 1 0 1 0 1 1 1    irregular   the mean
//! 4 4 4 0 0 0 0 0 0 0    filled      0: it stopped
//! 0 0 1 1 1 1 1 1 1 1    replaced    0: a ring, no more of it old than before
//! 0 0 0 0 0 0 0 0 4 4    last kept   0: nothing older survived
//! 0 0 0 0 9 0 0 0 0 0    once        0: one event proves no rate
//!
//! live bytes, of which only the newest block survives
//! 1 2 3 4 5 6 7 8 9 10   enlarged    1: a cache that is concatenated anew
//! 4 4 8 8 8 8 16 16 16   amortised   0: a Vec that doubles
//! 3 3 5 5 5 5 7 7 7 7    ratchet     0: as large as the largest input seen
//! ```
//!
//! What `n` iterations cannot tell, and this module is silent about:
//!
//! * growth that began in the second half, or a ring longer than that;
//! * a leak in every k-th iteration with fewer than two events in the run
//!   (`k > n / 2`), and, among blocks that come and go, with fewer than two
//!   that are at least two iterations old at the end (`2 * k + 2 > n`);
//! * blocks of different sizes that were left behind in three iterations or
//!   fewer, in no regular order: a cache keyed by shape looks alike;
//! * a leak in every k-th iteration beside blocks of the same group that come
//!   and go, for k above 128;
//! * an irregular leak of blocks beside a queue of the same group whose level
//!   moves as much as the leak adds;
//! * a buffer that is enlarged in fewer than four iterations, or now and then
//!   in no regular order: the largest input so far looks alike.
//!
//! What they cannot tell, and this module calls growth: a cache that takes new
//! entries up to the end of the run (more warm-up lets it fill before), or a
//! list that is flushed more rarely than the run is long. Below eight
//! iterations, also a cache that fills at even distances beside outputs of
//! the same size, and a queue that nothing was taken from.

mod judge;
mod pattern;
mod replaced;
mod trend;

#[cfg(test)]
pub(crate) mod programs;
#[cfg(test)]
mod randomized;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use pattern::{Pattern, Reading};
pub use replaced::{SHORTEST_RISE, rising, stepping, suspicious};
pub use trend::{Trend, intercept, theil_sen, trend};

/// Survivors of the measured iterations that belong together: blocks of one
/// size, or blocks of one call site. Every series has one value for each
/// measured iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Size of one block in bytes, where all are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// Surviving blocks by the measured iteration that they were born in.
    pub births: Vec<u64>,
    /// Their bytes, by the same iterations.
    pub bytes: Vec<u64>,
    /// Blocks that were live at the end of each measured iteration, whenever
    /// they were born.
    pub live: Vec<u64>,
    /// Their bytes.
    pub live_bytes: Vec<u64>,
    /// Those among them that were at least two iterations old: without what an
    /// iteration keeps for the next.
    pub old: Vec<u64>,
    /// Their bytes.
    pub old_bytes: Vec<u64>,
}

impl Group {
    /// A group of blocks of one size, from the series of counts.
    pub fn of_size(block: u64, births: Vec<u64>, live: Vec<u64>, old: Vec<u64>) -> Self {
        let bytes = |counts: &[u64]| counts.iter().map(|&count| count * block).collect();
        Self {
            block: Some(block),
            bytes: bytes(&births),
            live_bytes: bytes(&live),
            old_bytes: bytes(&old),
            births,
            live,
            old,
        }
    }

    /// Bytes that survive, all births together.
    pub fn bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Blocks that survive, all births together.
    pub fn count(&self) -> u64 {
        self.births.iter().sum()
    }

    /// Adds the blocks of another group over the same iterations.
    pub fn join(&mut self, other: &Self) {
        for (sum, series) in [
            (&mut self.births, &other.births),
            (&mut self.bytes, &other.bytes),
            (&mut self.live, &other.live),
            (&mut self.live_bytes, &other.live_bytes),
            (&mut self.old, &other.old),
            (&mut self.old_bytes, &other.old_bytes),
        ] {
            sum.iter_mut().zip(series).for_each(|(sum, value)| *sum += value);
        }
        self.block = self.block.filter(|_| self.block == other.block);
    }

    /// What is left of the group without the blocks of `other`, which are among
    /// its own.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let less = |all: &[u64], some: &[u64]| -> Vec<u64> {
            let some = some.iter().copied().chain(std::iter::repeat(0));
            all.iter().zip(some).map(|(all, some)| all.saturating_sub(some)).collect()
        };
        Self {
            block: self.block,
            births: less(&self.births, &other.births),
            bytes: less(&self.bytes, &other.bytes),
            live: less(&self.live, &other.live),
            live_bytes: less(&self.live_bytes, &other.live_bytes),
            old: less(&self.old, &other.old),
            old_bytes: less(&self.old_bytes, &other.old_bytes),
        }
    }

    /// Whether the blocks of `other` may be among its own, as far as survivors
    /// of each iteration tell.
    pub fn may_hold(&self, other: &Self) -> bool {
        let holds = |own: &[u64], others: &[u64]| own.iter().zip(others).all(|(a, b)| a >= b);
        holds(&self.births, &other.births) && holds(&self.bytes, &other.bytes)
    }

    /// Mean bytes an iteration of a group that may hide a leak among blocks of
    /// its size that come and go: survivors of at least three iterations, of
    /// both halves of the run. 0 for any other. Worth a look at call sites.
    pub fn suspicious(&self) -> u64 {
        let half = self.births.len() / 2;
        let born = |part: &[u64]| part.iter().filter(|&&births| births > 0).count();
        let (early, late) = (born(&self.births[..half]), born(&self.births[half..]));
        if early > 0 && late > 0 && early + late >= 3 {
            (self.bytes() / self.births.len() as u64).max(1)
        } else {
            0
        }
    }

    /// Whether every block of it ever seen was of one size. Survivors alone
    /// may be alike where what they replaced was not.
    fn alike(&self) -> bool {
        self.block.is_some_and(|block| {
            self.live.iter().zip(&self.live_bytes).all(|(&live, &bytes)| live * block == bytes)
        })
    }
}

/// Bytes an iteration over all groups and over the series of live bytes at
/// the end of each measured iteration: the metric `growth`, for groups by size.
///
/// Survivors see what is kept; the series sees what is replaced by something
/// larger each time, such as a key-value cache that is concatenated anew, of
/// which only the newest block survives. Groups by call site see that too,
/// and irregular leaks of blocks of different sizes; but events that are one
/// series by size may be scattered over sites, each too few to tell.
pub fn growth(groups: &[Group], allocated: &[u64]) -> u64 {
    let survivors: u64 = groups.iter().map(|group| group.read().bytes_per_iteration).sum();
    survivors.max(rising(allocated)).max(stepping(allocated))
}
