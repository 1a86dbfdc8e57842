//! Telling a leak from what only looks like one.
//!
//! The evidence is exact: at the end of the last measured iteration every
//! live block knows the iteration that it was born in, and a census after
//! every iteration says how much was live. Blocks are grouped by size, since
//! what leaks once an iteration leaks blocks of one size; a group is judged on
//! the iterations that its survivors come from.
//!
//! ```text
//! births per iteration   pattern     growth
//! 4 4 4 4 4 4 4 4 4 4    steady      4
//! 0 0 6 0 0 6 0 0 6 0    periodic    2 (6 every 3rd)
//! 1 2 3 4 5 6 7 8 9 10   growing     the mean
//! 4 4 4 0 0 0 0 0 0 0    filled      0: it stopped
//! 0 0 0 0 0 0 0 0 4 4    last kept   0: nothing older survived
//! 0 0 0 0 9 0 0 0 0 0    once        0: one event proves no rate
//! ```

use serde::{Deserialize, Serialize};

/// Survivors of the measured iterations that share a block size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Size of one block, in bytes.
    pub block: u64,
    /// Surviving blocks by the measured iteration that they were born in.
    pub births: Vec<u64>,
    /// Blocks of this size that were live at the end of each measured
    /// iteration, whenever they were born.
    pub live: Vec<u64>,
    /// Those among them that were at least two iterations old: without what an
    /// iteration keeps for the next.
    pub old: Vec<u64>,
}

/// A kind of growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// The same number of blocks in every iteration.
    Steady,
    /// Blocks in every k-th iteration.
    Periodic,
    /// More and more blocks an iteration.
    Growing,
    /// Blocks in some iterations up to the end, in no regular order.
    Irregular,
    /// A cache that filled and then stopped.
    Filled,
    /// A ring that replaces its oldest block.
    Replaced,
    /// Only the last iteration or two: double buffering.
    LastKept,
    /// One iteration only: no rate can be told from it.
    Once,
}

impl Pattern {
    /// Whether this is growth that goes on.
    pub fn is_growth(self) -> bool {
        matches!(self, Self::Steady | Self::Periodic | Self::Growing | Self::Irregular)
    }
}

/// What was made of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The kind of growth.
    pub pattern: Pattern,
    /// Bytes an iteration; 0 unless the growth goes on.
    pub bytes_per_iteration: u64,
}

impl Group {
    /// Bytes that survive, all births together.
    pub fn bytes(&self) -> u64 {
        self.count() * self.block
    }

    /// Blocks that survive, all births together.
    pub fn count(&self) -> u64 {
        self.births.iter().sum()
    }

    /// Judges the group. See the module's table.
    pub fn read(&self) -> Reading {
        let pattern = self.pattern();
        let bytes_per_iteration = if pattern.is_growth() { self.rate(pattern) } else { 0 };
        Reading { pattern, bytes_per_iteration }
    }

    fn pattern(&self) -> Pattern {
        let n = self.births.len();
        let born: Vec<usize> = (0..n).filter(|&i| self.births[i] > 0).collect();
        let (Some(&first), Some(&last)) = (born.first(), born.last()) else {
            return Pattern::Once;
        };
        // A leak reaches back: survivors of the first half prove it, those of
        // the last one or two iterations do not.
        if first + 2 >= n && n > 2 {
            return Pattern::LastKept;
        }
        if born.len() == 1 {
            return Pattern::Once;
        }
        let steps: Vec<usize> = born.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let longest = steps.iter().copied().max().unwrap_or(1);
        if n - 1 - last >= longest {
            return Pattern::Filled;
        }
        if !self.rises(longest) || self.was_flushed(first) {
            return Pattern::Replaced;
        }
        if first >= n.div_ceil(2) {
            // Nothing from the first half: a short ring, or growth that began
            // late. The series cannot tell, and a gate must not guess.
            return Pattern::LastKept;
        }
        let counts: Vec<u64> = born.iter().map(|&i| self.births[i]).collect();
        let regular = steps.iter().all(|&step| step == longest);
        // Survivors of the second half include what is only kept for now: a
        // ring, a double buffer, the last output.
        let settled = &counts[..counts.len().div_ceil(2)];
        let even = settled.iter().all(|&count| count == settled[0]);
        match (regular, even) {
            (true, true) if longest == 1 && first == 0 => Pattern::Steady,
            (true, true) if longest > 1 => Pattern::Periodic,
            (true, _) if counts.windows(2).all(|pair| pair[0] < pair[1]) => Pattern::Growing,
            _ => Pattern::Irregular,
        }
    }

    /// Whether old blocks of this size became more over the last whole period.
    /// A ring that replaces its oldest has survivors of many ages and does not;
    /// what one iteration keeps for the next is not old.
    fn rises(&self, period: usize) -> bool {
        let series = if self.births.len() < 4 { &self.live } else { &self.old };
        match series.len().checked_sub(period + 1) {
            Some(before) => series[series.len() - 1] > series[before],
            None => true,
        }
    }

    /// Whether everything was freed once, and no more is live now than before:
    /// a list that is flushed every so often.
    fn was_flushed(&self, first: usize) -> bool {
        let before = self.live.get(..first).and_then(|live| live.iter().max());
        before.is_some_and(|most| self.live.last().is_some_and(|now| now <= most))
    }

    fn rate(&self, pattern: Pattern) -> u64 {
        let n = self.births.len();
        let born: Vec<usize> = (0..n).filter(|&i| self.births[i] > 0).collect();
        match pattern {
            Pattern::Steady => self.births[0] * self.block,
            Pattern::Periodic => {
                let period = (born[1] - born[0]) as u64;
                self.births[born[0]] * self.block / period
            }
            // What survives of whole periods, over the iterations they span.
            _ => {
                let first = born[0];
                let last = *born.last().expect("growth has births");
                let bytes: u64 = self.births[first..last].iter().sum::<u64>() * self.block;
                bytes / (last - first) as u64
            }
        }
    }
}

/// Bytes an iteration over all groups and over the series of live bytes at
/// the end of each measured iteration: the metric `growth`.
///
/// Survivors see what is kept; the series sees what is replaced by something
/// larger each time, such as a key-value cache that is concatenated anew, of
/// which only the newest block survives.
pub fn growth(groups: &[Group], allocated: &[u64]) -> u64 {
    let survivors: u64 = groups.iter().map(|group| group.read().bytes_per_iteration).sum();
    survivors.max(rising(allocated))
}

/// Fewest iterations from which a rising series is called growth: with fewer,
/// a Vec that doubles twice rises every time.
pub const SHORTEST_RISE: usize = 4;

/// Bytes an iteration by which a series rises *in every iteration*, to stay;
/// 0 for any other series. Rising means that the level that is never undercut
/// again rises: a spike or a kept output does not count.
pub fn rising(allocated: &[u64]) -> u64 {
    if allocated.len() < SHORTEST_RISE {
        return 0;
    }
    let mut floor = allocated.to_vec();
    for i in (1..floor.len()).rev() {
        floor[i - 1] = floor[i - 1].min(floor[i]);
    }
    let rises = || floor.windows(2).map(|pair| pair[1] - pair[0]);
    if rises().any(|rise| rise == 0) {
        return 0;
    }
    // Amortised growth: every rise at least half as large again as the last.
    if rises().zip(rises().skip(1)).all(|(a, b)| b >= a + a / 2) {
        return 0;
    }
    (floor[floor.len() - 1] - floor[0]) / (floor.len() as u64 - 1)
}

/// Theil–Sen slope of a series in bytes an iteration: the median of the slopes
/// between all pairs. Evidence where there are only totals, and a cross-check
/// where there are blocks. `None` for fewer than two points.
pub fn theil_sen(series: &[u64]) -> Option<f64> {
    let mut slopes: Vec<f64> = Vec::with_capacity(series.len() * series.len() / 2);
    for (i, &a) in series.iter().enumerate() {
        for (j, &b) in series.iter().enumerate().skip(i + 1) {
            slopes.push((b as f64 - a as f64) / (j - i) as f64);
        }
    }
    slopes.sort_by(f64::total_cmp);
    let middle = slopes.len() / 2;
    match slopes.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(slopes[middle]),
        _ => Some(f64::midpoint(slopes[middle - 1], slopes[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group that keeps what it allocates: live is the running sum.
    fn kept(births: &[u64]) -> Group {
        let upto = |i: usize| births[..i].iter().sum();
        Group {
            block: 100,
            births: births.to_vec(),
            live: (0..births.len()).map(|i| upto(i + 1)).collect(),
            old: (0..births.len()).map(|i| upto(i.saturating_sub(1))).collect(),
        }
    }

    fn reading(births: &[u64]) -> (Pattern, u64) {
        let reading = kept(births).read();
        (reading.pattern, reading.bytes_per_iteration)
    }

    #[test]
    fn growth_that_goes_on_has_its_exact_rate() {
        assert_eq!(reading(&[4; 10]), (Pattern::Steady, 400));
        assert_eq!(reading(&[0, 0, 6, 0, 0, 6, 0, 0, 6, 0]), (Pattern::Periodic, 200));
        assert_eq!(reading(&[0, 0, 0, 5, 0, 0, 0, 0, 5, 0]), (Pattern::Periodic, 100));
        assert_eq!(reading(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).0, Pattern::Growing);
        assert_eq!(reading(&[1, 0, 2, 1, 0, 1, 2, 1, 0, 1]).0, Pattern::Irregular);
        // The last output is still alive: the rate is the leak's alone.
        assert_eq!(reading(&[4, 4, 4, 4, 4, 4, 4, 4, 4, 5]), (Pattern::Steady, 400));
        assert_eq!(reading(&[4, 4, 4, 4, 4, 4, 4, 4, 6, 5]), (Pattern::Steady, 400));
        // Short runs still tell.
        assert_eq!(reading(&[3, 3, 3]), (Pattern::Steady, 300));
        assert_eq!(reading(&[3, 3]), (Pattern::Steady, 300));
    }

    #[test]
    fn what_stops_or_is_replaced_is_no_growth() {
        assert_eq!(reading(&[4, 4, 4, 0, 0, 0, 0, 0, 0, 0]), (Pattern::Filled, 0));
        assert_eq!(reading(&[4, 4, 4, 4, 4, 4, 0, 0, 0, 0]), (Pattern::Filled, 0));
        assert_eq!(reading(&[0, 0, 0, 0, 0, 0, 0, 0, 4, 4]), (Pattern::LastKept, 0));
        assert_eq!(reading(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 4]), (Pattern::LastKept, 0));
        assert_eq!(reading(&[0, 0, 0, 0, 0, 1, 1, 1, 1, 1]), (Pattern::LastKept, 0));
        assert_eq!(reading(&[0, 0, 0, 0, 9, 0, 0, 0, 0, 0]), (Pattern::Once, 0));
        assert_eq!(reading(&[]), (Pattern::Once, 0));
        // A ring of eight: survivors of eight ages, and never more than eight.
        let ring = Group {
            block: 100,
            births: vec![0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
            live: vec![3, 4, 5, 6, 7, 8, 8, 8, 8, 8],
            old: vec![1, 2, 3, 4, 5, 6, 6, 6, 6, 6],
        };
        assert_eq!(ring.read(), Reading { pattern: Pattern::Replaced, bytes_per_iteration: 0 });
    }

    #[test]
    fn a_list_that_is_flushed_is_no_growth() {
        // Kept for seven iterations, then cleared: two cycles in the run.
        let flushed = Group {
            block: 100,
            births: vec![0, 0, 0, 0, 1, 1, 1, 1, 1, 1],
            live: vec![3, 4, 5, 6, 1, 2, 3, 4, 5, 6],
            old: vec![1, 2, 3, 4, 0, 0, 1, 2, 3, 4],
        };
        assert_eq!(flushed.read(), Reading { pattern: Pattern::Replaced, bytes_per_iteration: 0 });
    }

    #[test]
    fn a_leak_is_seen_beside_what_comes_and_goes() {
        // One a step is leaked; every other step ends with five more alive.
        let beside_temporaries = Group {
            block: 100,
            births: vec![1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            live: vec![6, 4, 8, 6, 10, 8, 12, 10, 14, 12],
            old: vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        };
        assert_eq!(beside_temporaries.read().bytes_per_iteration, 100);
        // One a step is leaked beside a ring of three of the same size.
        let beside_a_ring = Group {
            block: 100,
            births: vec![1, 1, 1, 1, 1, 1, 1, 2, 2, 2],
            live: (0..10).map(|i| 6 + i).collect(),
            old: (0..10).map(|i| 2 + i).collect(),
        };
        assert_eq!(beside_a_ring.read().bytes_per_iteration, 100);
    }

    #[test]
    fn growth_is_the_sum_over_the_sizes() {
        let groups = [kept(&[1; 10]), kept(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 1]), kept(&[2; 10])];
        assert_eq!(growth(&groups, &[]), 300);
    }

    #[test]
    fn a_buffer_replaced_by_a_larger_one_grows() {
        let cache: Vec<u64> = (0..10).map(|i| 1_000 + 64 * i).collect();
        let newest = [kept(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1])];
        assert_eq!(growth(&newest, &cache), 64);
        // Beside a leak that the survivors prove, the larger evidence holds.
        assert_eq!(growth(&[kept(&[1; 10])], &cache), 100);
    }

    #[test]
    fn a_series_that_only_sometimes_rises_is_no_growth() {
        assert_eq!(rising(&[5, 5, 5, 9, 9, 9, 9, 9]), 0, "ratchet");
        assert_eq!(rising(&[1, 9, 2, 9, 3, 9, 4, 9]), 0, "sawtooth that ends high");
        assert_eq!(rising(&[4, 8, 16, 32, 64]), 0, "a Vec that doubles");
        assert_eq!(rising(&[1, 2, 3]), 0, "too short to tell");
        assert_eq!(rising(&[9, 1, 2, 3, 4]), 0, "falls first");
    }

    #[test]
    fn the_slope_shrugs_off_a_spike() {
        assert_eq!(theil_sen(&[10, 20, 30, 900, 50, 60]), Some(10.0));
        assert_eq!(theil_sen(&[7, 7, 7]), Some(0.0));
        assert_eq!(theil_sen(&[7]), None);
    }
}
