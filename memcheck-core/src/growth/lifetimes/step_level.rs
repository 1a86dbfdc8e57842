//! One look at a figure without blocks, such as the resident memory of a process.

use super::decision::{Budget, Decision, Leak, Undecided};
use super::events::{Events, Look, records};
use super::judge_level::judge_level;
use super::rate::{Certainty, Rate};
use super::state::State;
use super::step::iterations_until;

/// Judges a figure that was read after each iteration, including the `warmup`. It grows if it rises
/// undiminished, and it is clean once a new highest value is overdue.
pub fn step_level(figures: &[u64], warmup: u32, budget: &Budget) -> Decision {
    let done = u32::try_from(figures.len()).unwrap_or(u32::MAX);
    let measured = figures.get(warmup as usize..).unwrap_or_default();
    let first = measured.first().copied().unwrap_or(0);
    let level: Vec<i64> = measured.iter().map(|&now| now.wrapping_sub(first) as i64).collect();
    let look = Look::new(budget, done, 1);
    let more = |until: usize| {
        let until = u32::try_from(until).unwrap_or(u32::MAX).saturating_add(warmup);
        Decision::More(iterations_until(until, done, warmup, budget))
    };
    match judge_level(&level, None, &look) {
        State::Quiet => {
            let records = Events::from_entries(records(&level).into_iter().map(|(at, _)| at));
            Decision::Clean { quiet_for: (level.len() - records.last) as u32 }
        }
        State::Grows { growth, is_whole } => {
            let rate = Rate::sum(growth.iter().map(|growth| &growth.rate));
            let is_exact = is_whole && rate.certainty == Certainty::Exact && done >= budget.least;
            if look.is_last || is_exact {
                Decision::Leak(Leak { rate, whole: is_whole, through: done, parts: Vec::new() })
            } else {
                more(look.horizon * 5 / 4 + 1)
            }
        }
        State::Open { open, .. } if look.is_last => {
            let bytes = level.iter().copied().max().unwrap_or(0).unsigned_abs();
            let rate = Rate::new(bytes.into(), (level.len() as u128).max(1), Certainty::Mean);
            Decision::Open(Undecided { open, through: done, blocks: 0, bytes, rate })
        }
        State::Open { until, .. } => more(until),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4_096;

    /// The growth of a figure that has this value after each iteration; `None` if it is open.
    fn growth(figure: impl Fn(u64) -> u64) -> Option<u64> {
        let budget = Budget::of(1_002);
        let mut figures = Vec::new();
        loop {
            figures.push((1 << 24) + figure(figures.len() as u64));
            match step_level(&figures, 2, &budget) {
                Decision::Clean { .. } => return Some(0),
                Decision::Leak(leak) => return Some(leak.rate.rounded()),
                Decision::Open(_) => return None,
                Decision::More(_) => assert!(figures.len() < 1_002),
            }
        }
    }

    /// Numbers without order below `most`.
    fn random(at: u64, most: u64) -> u64 {
        (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40 & (most - 1)
    }

    #[test]
    fn a_figure_that_rises_grows() {
        assert_eq!(growth(|at| at * PAGE), Some(PAGE));
        // A KiB in each iteration shows as a page in every fourth.
        assert_eq!(growth(|at| at / 4 * PAGE), Some(1_024));
        let noisy = growth(|at| at * 16 * PAGE + random(at, 8) * PAGE).expect("it is decided");
        assert!(noisy.abs_diff(16 * PAGE) < PAGE, "{noisy}");
    }

    #[test]
    fn a_figure_that_fills_or_moves_does_not_grow() {
        for (name, found) in [
            ("constant", growth(|_| 9 * PAGE)),
            ("fills", growth(|at| at.min(40) * PAGE)),
            ("pages that come and go", growth(|at| random(at, 16) * PAGE)),
            ("a buffer that is emptied", growth(|at| at % 50 * PAGE)),
            ("fills with noise", growth(|at| (at.min(30) * 4 + random(at, 4)) * PAGE)),
        ] {
            assert_eq!(found, Some(0), "{name}");
        }
    }
}
