//! How many further iterations there is time and memory for.

use std::time::Duration;

use memcheck_core::growth::lifetimes::History;
use memcheck_core::wire::protocol::Reach;
use memcheck_ledger as ledger;

use super::{Following, MOST_SOAKED, host_live};
use crate::available::available;

/// The longest time that iterations up to the horizon may take, for a test that has left no blocks
/// behind.
const HORIZON_TIME: Duration = Duration::from_millis(100);

/// The most memory that iterations may leave in all which are no more than a further proof.
const MEMORY_FOR_PROOF: u64 = 1 << 30;

/// A run that lasts for a time reads the clock after about this time.
pub(super) const BETWEEN_READINGS: Duration = Duration::from_secs(1);

impl Following {
    /// True if there are time and memory to prove with this number of further iterations what is
    /// decided already.
    pub(super) fn can_be_proved(&self, number: u32, ended: u32) -> bool {
        number > 0
            && self.iterations_in_time(ended) >= number
            && self.judged().all(|history| growth_of(history, number) <= MEMORY_FOR_PROOF)
    }

    /// The number of iterations until the clock must be read again; 0 once the test has been followed
    /// for its `min_time`, whatever has been found until then.
    pub(super) fn early_iterations(&self, ended: u32) -> u32 {
        let elapsed = self
            .extension
            .as_ref()
            .map_or(Duration::ZERO, |extension| extension.clock.real_elapsed());
        // Equal numbers mean that no further iteration is wanted.
        if self.budget.most <= self.warmup.saturating_add(self.screen) || elapsed >= self.min_time {
            return 0;
        }
        self.iterations_until(self.min_time - elapsed, ended).min(MOST_SOAKED.saturating_sub(ended))
    }

    /// About as many iterations as end in this time or, if it is long, before the clock must be read
    /// again.
    pub(super) fn iterations_until(&self, left: Duration, ended: u32) -> u32 {
        let each = self.clock.real_elapsed().checked_div(ended).unwrap_or_default();
        let left = BETWEEN_READINGS.min(left);
        let number = left.as_nanos().checked_div(each.as_nanos()).unwrap_or(u128::from(u32::MAX));
        // The first iterations may have been slower or faster than all others.
        u32::try_from(number).unwrap_or(u32::MAX).clamp(1, ended.max(1))
    }

    /// The number of iterations for which there is time, if each takes as long as those before. The
    /// time without a processor does not count, because other programs must not change a verdict.
    pub(super) fn iterations_in_time(&self, ended: u32) -> u32 {
        let each = self.clock.elapsed().checked_div(ended).unwrap_or_default();
        let left = match (&self.reach, &self.extension) {
            (Reach::Decision, Some(extension)) => {
                self.evidence.max(self.min_time).saturating_sub(extension.clock.elapsed())
            }
            (Reach::Decision, None) => self.evidence.max(self.min_time),
            _ => HORIZON_TIME.max(self.min_time),
        };
        let number = left.as_nanos().checked_div(each.as_nanos()).unwrap_or(u128::from(u32::MAX));
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The number of iterations for which half of the host's free memory and half of the ledger
    /// suffice, if each leaves as much behind as those before. A device needs no such limit,
    /// because it refuses an allocation when it is full.
    pub(super) fn iterations_in_memory(&self, ended: u32) -> u32 {
        let fits = |left: u64, room: u64| {
            let each = left / u64::from(ended.max(1));
            u32::try_from(room.checked_div(each).unwrap_or(u64::MAX)).unwrap_or(u32::MAX)
        };
        let bytes = host_live().saturating_sub(self.live_before);
        let room = (ledger::CAPACITY / 2).saturating_sub(self.blocks);
        fits(bytes, available().unwrap_or(u64::MAX) / 2).min(fits(self.blocks, room))
    }
}

/// The bytes that so many iterations add, if each adds as much as those before, or more by as much as
/// those of the second half have added more than those of the first.
fn growth_of(history: &History, number: u32) -> u64 {
    let live = history.live_bytes();
    let half = live.len() / 2;
    let at = |entry: usize| live.get(entry).copied().unwrap_or(0);
    let (first, second) =
        (at(half).saturating_sub(at(0)), at(live.len().saturating_sub(1)).saturating_sub(at(half)));
    let halves = f64::from(number) / (f64::from(history.epoch()) * half.max(1) as f64);
    let faster = second.saturating_sub(first) as f64 * (halves + 1.0) / 2.0;
    ((second as f64 + faster) * halves) as u64
}

#[cfg(test)]
mod tests {
    use memcheck_core::growth::lifetimes::Living;

    use super::*;

    /// One block is kept in each of 165 iterations.
    fn history(size: fn(u64) -> u64) -> History {
        let mut history = History::new(2);
        for born in 0..165 {
            let size = size(u64::from(born));
            history.advance([Living { site: None, size, born: Some(born), count: 1 }], []);
        }
        history
    }

    #[test]
    fn growth_that_accelerates_is_expected_to_do_so_further_on() {
        let steady = growth_of(&history(|_| 64), 837);
        assert!(steady.abs_diff(837 * 64) <= 1, "{steady}");
        let faster = growth_of(&history(|at| 1_024 * (at + 1)), 837);
        let truth: u64 = (165..1_002).map(|at| 1_024 * (at + 1)).sum();
        assert!(faster.abs_diff(truth) < truth / 100, "{faster} is not {truth}");
        assert_eq!(growth_of(&History::new(2), 837), 0);
    }
}
