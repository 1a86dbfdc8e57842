//! Judging a group on the iterations that its survivors were born in.

use super::{Group, Pattern, Reading, replaced};

/// Fewest iterations with survivors from which blocks of different sizes in
/// no regular order are called growth: with fewer, a cache keyed by shape.
const FEWEST_IRREGULAR: usize = 4;

/// Survivors as young as this prove nothing: double buffering.
const YOUNG: usize = 2;

/// The longest period that is looked for beside what is kept for a while: in a
/// run of thousands of iterations every one of them would take its time.
const LONGEST_PERIOD: usize = 128;

impl Group {
    /// Judges the group. See the module's table.
    pub fn read(&self) -> Reading {
        let born = self.born(self.births.len());
        let newest_only = born.len() <= 1
            || born.first().is_some_and(|&first| first + YOUNG >= self.births.len());
        if newest_only
            && !self.alike()
            && let Some(reading) = replaced::read(self)
        {
            return reading;
        }
        let (pattern, last) = self.pattern(&born);
        // A queue that is filled faster than it is emptied: what is old leaves,
        // and there is more each time.
        if matches!(pattern, Pattern::Replaced | Pattern::LastKept)
            && let Some(reading) = replaced::rises_evenly(self)
        {
            return reading;
        }
        if pattern.is_growth() { self.growing(pattern, &born) } else { self.held(pattern, last) }
    }

    /// Iterations before `end` that survivors were born in.
    fn born(&self, end: usize) -> Vec<usize> {
        (0..end).filter(|&i| self.births[i] > 0).collect()
    }

    /// The pattern, and the iteration in which it last happened.
    fn pattern(&self, born: &[usize]) -> (Pattern, Option<usize>) {
        let n = self.births.len();
        let (Some(&first), Some(&last)) = (born.first(), born.last()) else {
            return (Pattern::Once, None);
        };
        let found = |pattern| (pattern, Some(last));
        // A leak reaches back: survivors of the first half prove it, those of
        // the last one or two iterations do not.
        if first + YOUNG >= n && n > 2 {
            return found(Pattern::LastKept);
        }
        if born.len() == 1 {
            return found(Pattern::Once);
        }
        let longest = longest_step(born);
        if n - 1 - last >= longest {
            return found(Pattern::Filled);
        }
        if let Some(stopped) = self.stopped_beside_young() {
            return stopped;
        }
        // As many live after every iteration: nothing was added.
        let level = self.live.windows(2).all(|pair| pair[0] == pair[1]);
        if level || !self.rises(longest) || self.was_flushed(first) {
            return found(Pattern::Replaced);
        }
        if first >= n.div_ceil(2) {
            // Nothing from the first half: a short ring, or growth that began
            // late. The series cannot tell, and a gate must not guess.
            return found(Pattern::LastKept);
        }
        found(self.order(born, longest))
    }

    /// In what order growth happens, if there is enough to tell it.
    fn order(&self, born: &[usize], longest: usize) -> Pattern {
        let bytes: Vec<u64> = born.iter().map(|&i| self.bytes[i]).collect();
        let regular = born.windows(2).all(|pair| pair[1] - pair[0] == longest);
        // Survivors of the second half include what is only kept for now: a
        // ring, a double buffer, the last output. Where sizes differ, the same
        // bytes twice are worth less: all that is not young must agree.
        let settled = if self.alike() {
            bytes.len().div_ceil(2)
        } else {
            self.born(self.births.len().saturating_sub(YOUNG)).len().max(2).min(bytes.len())
        };
        let even = bytes[..settled].iter().all(|&each| each == bytes[0]);
        let passing = || self.exact().is_none() && self.comes_and_goes(longest);
        match (regular, even) {
            (true, true) if longest == 1 && born[0] == 0 => Pattern::Steady,
            (true, true) if longest > 1 && passing() => Pattern::Replaced,
            (true, true) if longest > 1 => Pattern::Periodic,
            _ if !self.alike() && born.len() < FEWEST_IRREGULAR => Pattern::Sporadic,
            (true, _) if bytes.windows(2).all(|pair| pair[0] < pair[1]) => Pattern::Growing,
            _ if passing() => Pattern::Replaced,
            _ => Pattern::Irregular,
        }
    }

    /// Whether it stopped, although blocks of the last two iterations survive:
    /// just as many were young in the quiet time before, and died.
    fn stopped_beside_young(&self) -> Option<(Pattern, Option<usize>)> {
        let n = self.births.len();
        let aged = self.born(n.saturating_sub(YOUNG));
        let &last = aged.last()?;
        let young = |i: usize| self.live[i].saturating_sub(self.old[i]);
        // Blocks that were young here are neither from before nor survivors.
        let quiet = last + YOUNG..n - YOUNG;
        let passing = quiet.map(young).max()?;
        if young(n - 1) > passing {
            return None;
        }
        // A periodic leak may have its latest event among the young ones,
        // unless what passes is always the same.
        let longest = longest_step(&aged);
        let periodic = aged.windows(2).all(|pair| pair[1] - pair[0] == longest);
        let constant =
            (1..n - YOUNG).all(|i| young(i) == young(n - 1) + self.births[i] + self.births[i - 1]);
        let end = if periodic && !constant { n - 1 - YOUNG } else { n - 1 };
        let pattern = if aged.len() == 1 { Pattern::Once } else { Pattern::Filled };
        (end - last >= longest).then_some((pattern, Some(last)))
    }

    /// Whether old blocks became more over the last whole period. A ring that
    /// replaces its oldest has survivors of many ages and does not; what one
    /// iteration keeps for the next is not old.
    fn rises(&self, period: usize) -> bool {
        let series = if self.births.len() < 4 { &self.live } else { &self.old };
        match series.len().checked_sub(period + 1) {
            Some(before) => series[series.len() - 1] > series[before],
            None => true,
        }
    }

    /// Whether everything was freed once, and no more is live now than before,
    /// nor more of it old: a list that is flushed every so often.
    fn was_flushed(&self, first: usize) -> bool {
        let no_more = |series: &[u64]| {
            let before = series.get(..first).and_then(|before| before.iter().max());
            before.is_some_and(|most| series.last().is_some_and(|now| now <= most))
        };
        no_more(&self.live) && no_more(&self.old)
    }

    /// Whether old blocks died in these iterations, and the rest did not rise
    /// clear of it: a queue whose level moves, a list that is flushed, a cache
    /// that evicts.
    fn comes_and_goes(&self, longest: usize) -> bool {
        let n = self.births.len();
        let before = self.live[n - 1].saturating_sub(self.count());
        let mut survive = 0;
        let died = (0..n).any(|i| {
            survive += i.checked_sub(YOUNG).map_or(0, |aged| self.births[aged]);
            self.old[i] > before + survive
        });
        let fell = self.old.windows(2).any(|pair| pair[1] < pair[0]);
        let early = self.old[..n / 2].iter().max();
        let late = self.old[n - (n / 3).max(1)..].iter().min();
        let level = self.live[n - 1] <= self.live[n - 1 - longest];
        died && (fell || level || late <= early)
    }

    /// Growth with its figures.
    fn growing(&self, pattern: Pattern, born: &[usize]) -> Reading {
        let (first, last) = (born[0], born[born.len() - 1]);
        let step = (born[1] - first) as u64;
        let reading = |pattern, period: u64, bytes: u64, rate: u64| Reading {
            pattern,
            bytes_per_iteration: rate.max(1),
            period,
            bytes,
            last: last as u64 + 1,
            groups: 1,
        };
        // What survives of whole periods, over the iterations they span.
        let mean = self.bytes[first..last].iter().sum::<u64>() / (last - first) as u64;
        if pattern == Pattern::Growing {
            return reading(pattern, step, self.increment(born), mean);
        }
        match (self.exact(), pattern) {
            (Some((1, bytes)), _) => reading(Pattern::Steady, 1, bytes, bytes),
            (Some((period, bytes)), _) => {
                reading(Pattern::Periodic, period as u64, bytes, bytes / period as u64)
            }
            (None, Pattern::Irregular) => reading(pattern, 1, mean, mean),
            (None, _) => reading(pattern, step, self.bytes[first], self.bytes[first] / step),
        }
    }

    /// By how many bytes more each time, where that is constant; else 0.
    fn increment(&self, born: &[usize]) -> u64 {
        let mut rises = born.windows(2).map(|pair| self.bytes[pair[1]] - self.bytes[pair[0]]);
        let Some(first) = rises.next() else { return 0 };
        // The last ones may count what is only kept for now.
        let settled = born.len().div_ceil(2).saturating_sub(2);
        if rises.take(settled).all(|rise| rise == first) { first } else { 0 }
    }

    /// What is left behind in every k-th iteration, and k, beside anything
    /// that is only kept for a while: old bytes rise by exactly that over each
    /// k iterations at the end of the run, and the survivors are there.
    fn exact(&self) -> Option<(usize, u64)> {
        let n = self.births.len();
        (1..=(n / 2).min(LONGEST_PERIOD)).find_map(|k| {
            let rise = |i: usize| self.old_bytes[i].checked_sub(self.old_bytes[i - k]);
            let bytes = rise(n - 1).filter(|&bytes| bytes > 0)?;
            let even = (k..n).rev().take_while(|&i| rise(i) == Some(bytes)).count();
            if even < k.max(3) {
                return None;
            }
            (0..k).any(|phase| self.explains(k, bytes, phase, even)).then_some((k, bytes))
        })
    }

    /// Whether `bytes` in every k-th iteration explain the survivors, old
    /// bytes having risen by as much in `even` iterations at the end.
    fn explains(&self, k: usize, bytes: u64, phase: usize, even: usize) -> bool {
        let n = self.births.len();
        let leaked = |i: usize| if i % k == phase { bytes } else { 0 };
        if (phase..n).step_by(k).any(|i| self.bytes[i] < bytes) {
            return false;
        }
        // What is beside it is a ring, if there is nothing but a tail of it;
        // anything else must have come to an end in the first half.
        let ring =
            (0..n).skip_while(|&i| self.bytes[i] == leaked(i)).all(|i| self.bytes[i] > leaked(i));
        even >= (n / 2).max(k).min(n - k).max(3) || (ring && even >= k.max(3))
    }

    /// What is no growth, with what it holds.
    fn held(&self, pattern: Pattern, last: Option<usize>) -> Reading {
        let live = self.live_bytes.last().copied().unwrap_or(0);
        let since = |i: usize| self.bytes[i..].iter().sum::<u64>();
        let bytes = match (pattern, last) {
            (Pattern::Filled, Some(last)) => live.saturating_sub(since(last + 1)),
            (Pattern::Once, Some(last)) => self.bytes[last],
            (Pattern::Replaced, _) => live,
            _ => self.bytes(),
        };
        let last = last.map_or(0, |last| last as u64 + 1);
        Reading { pattern, bytes_per_iteration: 0, period: 1, bytes, last, groups: 1 }
    }
}

/// The longest distance between two iterations; 1 for a single one.
fn longest_step(born: &[usize]) -> usize {
    born.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(1)
}
