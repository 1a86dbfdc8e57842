//! Buffers that are replaced by larger ones: levels of live bytes, where the
//! survivors show nothing but the newest block.

use super::{Group, Pattern, Reading};

/// Fewest iterations from which a rising series is called growth: with fewer,
/// a Vec that doubles twice rises every time.
pub const SHORTEST_RISE: usize = 4;

/// The same for one group by the same bytes each time: outputs of random
/// shapes are in order by chance, and there are many more groups than spaces.
const SHORTEST_EVEN_RISE: usize = 6;

/// The same for one group that rises by other bytes each time.
const SHORTEST_UNEVEN_RISE: usize = 10;

/// Fewest rises of the same bytes at the same distance that are growth.
const FEWEST_STEPS: usize = 4;

/// Bytes an iteration by which a series rises *in every iteration*, to stay;
/// 0 for any other series. Rising means that the level that is never undercut
/// again rises: a spike or a kept output does not count.
pub fn rising(allocated: &[u64]) -> u64 {
    if allocated.len() < SHORTEST_RISE {
        return 0;
    }
    let floor = floor(allocated);
    let rises = || floor.windows(2).map(|pair| pair[1] - pair[0]);
    if rises().any(|rise| rise == 0) {
        return 0;
    }
    // Amortised growth: every rise at least half as large again as the last.
    if rises().zip(rises().skip(1)).all(|(a, b)| b >= a + a / 2) {
        return 0;
    }
    // A ring of outputs of random shapes is in order by chance now and then.
    // The last value has nothing after it that would undercut a kept output.
    let settled = || rises().take(floor.len() - 2);
    let ordered = settled().zip(settled().skip(1)).all(|(a, b)| a <= b);
    let never_falls = allocated.windows(2).all(|pair| pair[0] < pair[1]);
    if !ordered && (!never_falls || allocated.len() < SHORTEST_UNEVEN_RISE) {
        return 0;
    }
    (floor[floor.len() - 1] - floor[0]) / (floor.len() as u64 - 1)
}

/// Bytes an iteration by which a series rises by the same bytes in every k-th
/// iteration, to stay: a cache that is enlarged in steps; 0 for any other.
pub fn stepping(allocated: &[u64]) -> u64 {
    steps(&floor(allocated)).map_or(0, |(period, bytes)| (bytes / period as u64).max(1))
}

/// Mean bytes an iteration of a series that may rise, and that totals alone
/// cannot tell from one that fluctuates: worth a look at call sites. 0 where
/// it has settled in the last third.
pub fn suspicious(allocated: &[u64]) -> u64 {
    let n = allocated.len();
    if n < SHORTEST_EVEN_RISE {
        return 0;
    }
    let floor = floor(allocated);
    let rises = rises(&floor);
    let goes_on = rises.iter().any(|&at| at >= n - n / 3) && rises.iter().any(|&at| at < n / 2);
    if rises.len() < n / 4 || !goes_on { 0 } else { (floor[n - 1] - floor[0]) / (n as u64 - 1) }
}

/// The distance and the bytes of steps of one height at one distance.
fn steps(floor: &[u64]) -> Option<(usize, u64)> {
    let mut steps = rises(floor);
    let start = *steps.first()?;
    // What is there first is not what is added to it.
    if floor[start - 1] == 0 {
        steps.remove(0);
    }
    let (&first, &last) = (steps.first()?, steps.last()?);
    let (period, bytes) = (*steps.get(1)? - first, floor[first] - floor[first - 1]);
    let regular = steps.windows(2).all(|pair| pair[1] - pair[0] == period)
        && steps.iter().all(|&at| floor[at] - floor[at - 1] == bytes);
    let goes_on = start <= period && floor.len() - 1 - last < period;
    (steps.len() >= FEWEST_STEPS && regular && goes_on).then_some((period, bytes))
}

/// The level that is never undercut again.
fn floor(series: &[u64]) -> Vec<u64> {
    let mut floor = series.to_vec();
    for i in (1..floor.len()).rev() {
        floor[i - 1] = floor[i - 1].min(floor[i]);
    }
    floor
}

/// What the level of live bytes says of a group of which only the newest block
/// survives; `None` where it says nothing.
pub(super) fn read(group: &Group) -> Option<Reading> {
    enlarged(group).or_else(|| enlarged_at_times(group)).or_else(|| held(group))
}

/// Enlarged in every iteration.
fn enlarged(group: &Group) -> Option<Reading> {
    let rate = rising(&group.live_bytes);
    let n = group.live_bytes.len();
    let floor = floor(&group.live_bytes);
    // The last value has nothing after it that would undercut a kept output.
    let even = floor[..n.max(1) - 1].windows(2).all(|pair| pair[1] - pair[0] == rate);
    let enough = if even { SHORTEST_EVEN_RISE } else { SHORTEST_UNEVEN_RISE };
    (rate > 0 && n >= enough).then_some(Reading {
        pattern: Pattern::Enlarged,
        bytes_per_iteration: rate,
        period: 1,
        bytes: rate,
        last: n as u64,
        groups: 1,
    })
}

/// More by the same bytes after every iteration, and to stay.
pub(super) fn rises_evenly(group: &Group) -> Option<Reading> {
    enlarged(group).filter(|reading| {
        group
            .live_bytes
            .windows(2)
            .all(|pair| pair[1].checked_sub(pair[0]) == Some(reading.bytes_per_iteration))
    })
}

/// Enlarged by the same bytes in every k-th iteration.
fn enlarged_at_times(group: &Group) -> Option<Reading> {
    let floor = floor(&group.live_bytes);
    let (period, bytes) = steps(&floor)?;
    let last = rises(&floor).last().copied()?;
    stays(group).then(|| Reading {
        pattern: Pattern::Enlarged,
        bytes_per_iteration: (bytes / period as u64).max(1),
        period: period as u64,
        bytes,
        last: last as u64 + 1,
        groups: 1,
    })
}

/// Enlarged now and then, and kept: a Vec, or room for the largest input.
fn held(group: &Group) -> Option<Reading> {
    let levels = &group.live_bytes;
    let steps = rises(levels);
    let kept = levels.windows(2).all(|pair| pair[0] <= pair[1]);
    // More often than not is no longer now and then: outputs of some shape.
    if !kept || !stays(group) || steps.is_empty() || steps.len() > levels.len() / 2 {
        return None;
    }
    // A capacity is rounded up, and a header may stand beside it.
    let doubles = |&at: &usize| {
        let (before, after) = (levels[at - 1], levels[at]);
        after.abs_diff(before * 2) <= before / 16
    };
    Some(Reading {
        pattern: if steps.iter().all(doubles) { Pattern::Amortised } else { Pattern::Ratchet },
        bytes_per_iteration: 0,
        period: 1,
        bytes: *levels.last()?,
        last: *steps.last()? as u64 + 1,
        groups: 1,
    })
}

/// Where a series rises.
fn rises(series: &[u64]) -> Vec<usize> {
    (1..series.len()).filter(|&i| series[i] > series[i - 1]).collect()
}

/// Whether as many blocks are live at the end as at first: then a rise of
/// their bytes is a larger block in the place of a smaller one.
fn stays(group: &Group) -> bool {
    group.live.iter().find(|&&live| live > 0) == group.live.last()
}
