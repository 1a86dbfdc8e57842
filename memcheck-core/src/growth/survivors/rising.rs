//! Memory that has risen in every iteration of a run that ended early. Its growth can be of any kind,
//! so that only the smallest step of all iterations is known.

use crate::growth::lifetimes::{Certainty, History, Part, PartPattern, Rate, Series};

/// So many steps are enough, however long the screen is.
const ENOUGH_STEPS: usize = 5;

/// The fewest steps that count, of a screen of so many iterations: all of a short one. One step
/// alone is no series.
fn fewest_steps(screen: usize) -> usize {
    screen.saturating_sub(1).clamp(2, ENOUGH_STEPS)
}

/// The parts of the growth: the call sites that rise, at the rate of the smallest step of the space.
/// If the space has also fallen, they are the call sites that have not, each at the rate of its own
/// smallest step.
pub(super) fn parts(history: &History, screen: usize) -> Vec<Part> {
    let fewest = fewest_steps(screen);
    let of_sites = history.by_site();
    let groups = if of_sites.is_empty() { history.by_size() } else { of_sites };
    if let Some(step) = smallest_step(&history.live_bytes(), fewest) {
        let rises = |series: &&Series| series.live_bytes.is_sorted() && rise(series) > 0;
        let rising: Vec<&Series> = groups.iter().filter(rises).collect();
        let all: u64 = rising.iter().map(|series| rise(series)).sum();
        let share = |series: &&Series| {
            let bytes = u128::from(step) * u128::from(rise(series));
            part(series, Rate::new(bytes, all.into(), Certainty::Mean))
        };
        return rising.iter().map(share).collect();
    }
    let of_group = |series: &Series| {
        let step = smallest_step(&series.live_bytes, fewest)?;
        Some(part(series, Rate::new(step.into(), 1, Certainty::Mean)))
    };
    groups.iter().filter_map(of_group).collect()
}

fn rise(series: &Series) -> u64 {
    let ends = series.live_bytes.first().zip(series.live_bytes.last());
    ends.map_or(0, |(first, last)| last.saturating_sub(*first))
}

/// `None` if one of the steps is zero or less, or if there are too few.
fn smallest_step(live: &[u64], fewest: usize) -> Option<u64> {
    let steps = live.windows(2).map(|pair| pair[1].checked_sub(pair[0]).filter(|&step| step > 0));
    let steps: Vec<u64> = steps.collect::<Option<_>>()?;
    steps.iter().copied().min().filter(|_| steps.len() >= fewest)
}

fn part(series: &Series, rate: Rate) -> Part {
    Part {
        site: series.site,
        size: series.block,
        rate,
        pattern: PartPattern::Rising,
        replaced: false,
        blocks: series.born.iter().sum(),
        bytes: series.born_bytes.iter().sum(),
    }
}
