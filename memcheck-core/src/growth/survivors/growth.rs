//! Turns a decision into the growth figure of a space and into its groups.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Group, Pattern, Reading, rising};
use crate::growth::lifetimes::{self, Certainty, Decision, History, Open, Part, Series};

/// The verdict on the growth of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// Further iterations can decide it.
    Unknown,
    /// The space has not grown.
    Quiet {
        /// Iterations that this holds for.
        iterations: u32,
    },
    /// Memory grows.
    Found {
        /// True if the figure is all of the growth, false if the growth is at least the figure.
        whole: bool,
        /// True if the growth repeats exactly, whatever the number of iterations.
        exact: bool,
        /// Iterations that the growth was seen for, including the warm-up.
        iterations: u32,
    },
    /// The budget of iterations is spent without a verdict.
    Undecided {
        /// The reason that the verdict is open.
        open: Open,
        /// Bytes that may be growth.
        bytes: u64,
        /// Iterations that the space was followed for, including the warm-up.
        iterations: u32,
    },
}

impl Default for Growth {
    fn default() -> Self {
        Self::Quiet { iterations: 0 }
    }
}

/// The growth of a space with its groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grown {
    /// The verdict.
    pub growth: Growth,
    /// Bytes per iteration: the sum over the groups.
    pub bytes_per_iteration: u64,
    /// Groups that cannot be attributed to a call site.
    pub by_size: Vec<Group>,
    /// Groups by call site.
    pub by_site: BTreeMap<u32, Group>,
}

impl Grown {
    /// Turns growth into an undecided verdict, for a run that had too few iterations to prove it.
    #[must_use]
    pub fn undecided(mut self, iterations: u32) -> Self {
        if self.bytes_per_iteration == 0 {
            return self;
        }
        let mut bytes = 0;
        for group in self.by_size.iter_mut().chain(self.by_site.values_mut()) {
            if group.reading.grows() {
                bytes += group.bytes();
                group.reading.bytes_per_iteration = 0;
            }
        }
        self.bytes_per_iteration = 0;
        self.growth = Growth::Undecided { open: Open::GoesOn, bytes, iterations };
        self
    }
}

/// A part of the growth, with its rate as a whole number.
#[derive(Debug)]
struct Share {
    part: Part,
    /// Bytes per iteration.
    rate: u64,
    /// The growth of all parts with blocks of the same size, if there are others.
    shared: Option<Reading>,
}

/// Turns `decision` into the growth and the groups of `history`. The series of a group have at most
/// `screen` entries: the first measured ones, or those from the first surviving birth on if no
/// block of the first ones survives.
pub fn read(history: &History, decision: &Decision, screen: usize) -> Grown {
    let parts = match decision {
        Decision::Leak(leak) => leak.parts.clone(),
        Decision::Open(open) if open.open == Open::GoesOn => unfinished_parts(history, open),
        _ => Vec::new(),
    };
    read_parts(history, parts, growth(decision), screen)
}

/// The growth of a space whose run has ended too early to decide it. `None` unless memory has risen
/// in every iteration. The growth is then at least the smallest step.
pub fn read_rising(history: &History, screen: usize) -> Option<Grown> {
    let parts = rising::parts(history, screen);
    let growth = Growth::Found { whole: false, exact: false, iterations: history.iterations() };
    (!parts.is_empty()).then(|| read_parts(history, parts, growth, screen))
}

fn read_parts(history: &History, mut wholes: Vec<Part>, growth: Growth, screen: usize) -> Grown {
    wholes.iter_mut().for_each(|part| set_shortest_period(part, history.epoch()));
    let divided: Vec<Vec<Part>> =
        wholes.iter().map(|part| split_among_sites(history, part, &wholes)).collect();
    let rates: Vec<_> = divided.iter().flatten().map(|part| part.rate).collect();
    let total = lifetimes::Rate::sum(&rates).rounded();
    let mut shares = apportion(&rates, total).into_iter();
    let shares: Vec<Vec<u64>> =
        divided.iter().map(|parts| shares.by_ref().take(parts.len()).collect()).collect();
    let shared = shared_readings(&wholes, &shares);
    let shares = divided.into_iter().flatten().zip(shares.into_iter().flatten());
    let parts: Vec<Share> = shares
        .map(|(part, rate)| Share { shared: shared.get(&part.size).copied(), part, rate })
        .collect();
    let mut grown = Grown {
        growth,
        bytes_per_iteration: parts.iter().map(|share| share.rate).sum(),
        ..Grown::default()
    };
    let by_site = history.by_site();
    for series in &by_site {
        let site = series.site.unwrap_or_default();
        let of_site: Vec<&Share> =
            parts.iter().filter(|share| share.part.site == Some(site)).collect();
        let group = group(history, series, &of_site, screen);
        // Sites with surviving births are never left out, because their entries are in the series.
        if group.live.last().is_some_and(|&live| live > 0) {
            grown.by_site.insert(site, group);
        }
    }
    let mut of_size: Vec<&Share> = parts.iter().filter(|share| share.part.site.is_none()).collect();
    for series in history.by_size() {
        let (own, rest) = of_size.into_iter().partition::<Vec<_>, _>(|share| {
            series.block.is_some() && share.part.size == series.block
        });
        of_size = rest;
        if !own.is_empty() || (by_site.is_empty() && series.born.iter().any(|&born| born > 0)) {
            grown.by_size.push(group(history, &series, &own, screen));
        }
    }
    // A part with several sizes has no series of its own: its group gets that of all blocks.
    for share in of_size {
        let mut all = group(history, &sum_of_sizes(history), &[share], screen);
        all.block = share.part.size;
        grown.by_size.push(all);
    }
    grown
}

/// For each size with several shares, the growth of all of them. `shares` has those of each part.
fn shared_readings(parts: &[Part], shares: &[Vec<u64>]) -> BTreeMap<Option<u64>, Reading> {
    let mut readings: BTreeMap<Option<u64>, (Reading, usize)> = BTreeMap::new();
    for (part, shares) in parts.iter().zip(shares).filter(|(part, _)| !part.replaced) {
        let reading = growing_reading(part, shares.iter().sum(), false);
        let sum = readings.entry(part.size).or_insert((reading, 0));
        if sum.1 > 0 {
            sum.0 = sum.0.merge(reading);
        }
        sum.1 += shares.len();
    }
    let of_several = readings.into_iter().filter(|&(_, (_, shares))| shares > 1);
    of_several.map(|(size, (reading, _))| (size, reading)).collect()
}

/// Turns `decision` about a figure without blocks into its growth.
pub fn read_level(decision: &Decision) -> Grown {
    let rate = match decision {
        Decision::Leak(leak) => Some(&leak.rate),
        Decision::Open(open) if open.open == Open::GoesOn => Some(&open.rate),
        _ => None,
    };
    Grown {
        growth: growth(decision),
        bytes_per_iteration: rate.map_or(0, lifetimes::Rate::rounded),
        ..Grown::default()
    }
}

fn growth(decision: &Decision) -> Growth {
    match decision {
        Decision::More(_) => Growth::Unknown,
        Decision::Clean { quiet_for } => Growth::Quiet { iterations: *quiet_for },
        Decision::Leak(leak) => Growth::Found {
            whole: leak.whole,
            exact: leak.rate.certainty == Certainty::Exact,
            iterations: leak.through,
        },
        Decision::Open(open) if open.open == Open::GoesOn => {
            Growth::Found { whole: false, exact: false, iterations: open.through }
        }
        Decision::Open(open) => {
            Growth::Undecided { open: open.open, bytes: open.bytes, iterations: open.through }
        }
    }
}

/// Splits in proportion to the bytes left; `others` are the parts of the same leak.
fn split_among_sites(history: &History, part: &Part, others: &[Part]) -> Vec<Part> {
    if part.site.is_some() {
        return vec![part.clone()];
    }
    let groups = match part.size {
        Some(_) => history.by_site_and_size(),
        None => history.by_site(),
    };
    let belongs_to_part = |series: &Series| match part.size {
        Some(_) => series.block == part.size,
        None => others.iter().all(|other| other.site.is_none() || other.site != series.site),
    };
    let left = |series: &Series| -> (u64, u64) {
        let settled = series.born.len().saturating_sub(1 + series.oldest_death);
        (series.born[..settled].iter().sum(), series.born_bytes[..settled].iter().sum())
    };
    // A call site can have a part of its own, whose blocks are not those of this part.
    let has_own = |series: &Series| {
        let is_own = |other: &Part| {
            other.site == series.site && (other.size.is_none() || other.size == part.size)
        };
        series.site.is_some() && others.iter().any(is_own)
    };
    let sites: Vec<(Option<u32>, (u64, u64))> = groups
        .iter()
        .filter(|series| belongs_to_part(series) && !has_own(series))
        .map(|series| (series.site, left(series)))
        .filter(|&(_, (_, bytes))| bytes > 0)
        .collect();
    // No block of a buffer that is replaced settles, so that its level shows where it is allocated.
    let rising = |series: &Series| {
        let ends = series.live_bytes.first().zip(series.live_bytes.last());
        let rise = ends.map_or(0, |(first, last)| last.saturating_sub(*first));
        (series.site, (series.born.iter().sum(), rise))
    };
    let sites: Vec<(Option<u32>, (u64, u64))> = if sites.is_empty() && part.replaced {
        let own = groups.iter().filter(|series| belongs_to_part(series) && !has_own(series));
        own.map(rising).filter(|&(_, (_, rise))| rise > 0).collect()
    } else {
        sites
    };
    let all: u64 = sites.iter().map(|&(_, (_, bytes))| bytes).sum();
    if all == 0 {
        return vec![part.clone()];
    }
    let share = |&(site, (blocks, bytes)): &(Option<u32>, (u64, u64))| Part {
        site,
        rate: lifetimes::Rate::new(
            part.rate.bytes().saturating_mul(u128::from(bytes)),
            part.rate.iterations().saturating_mul(u128::from(all)),
            part.rate.certainty,
        ),
        // The rhythm of the sum is not that of one call site among several.
        pattern: if sites.len() == 1 { part.pattern } else { lifetimes::PartPattern::Mean },
        blocks,
        bytes,
        ..part.clone()
    };
    sites.iter().map(share).collect()
}

/// One part for each call site with blocks left, or size, at the mean rate of settled bytes. If none
/// have settled, all blocks share the rate of the decision.
fn unfinished_parts(history: &History, open: &lifetimes::Undecided) -> Vec<Part> {
    let sites = history.by_site();
    let groups = if sites.is_empty() { history.by_size() } else { sites };
    let part = |series: &Series, length: usize| {
        let blocks = series.born[..length].iter().sum();
        let bytes: u64 = series.born_bytes[..length].iter().sum();
        let iterations = length.max(1) as u128 * u128::from(history.epoch());
        Part {
            site: series.site,
            size: series.block,
            rate: lifetimes::Rate::new(u128::from(bytes), iterations, Certainty::Mean),
            pattern: lifetimes::PartPattern::Mean,
            replaced: false,
            blocks,
            bytes,
        }
    };
    let parts = |length: fn(&Series) -> usize| -> Vec<Part> {
        let all = groups.iter().map(|series| part(series, length(series)));
        all.filter(|part| part.bytes > 0).collect()
    };
    // Younger blocks may still die, and so may those of the last iteration.
    let settled = parts(|series| series.born.len().saturating_sub(1 + series.oldest_death));
    if !settled.is_empty() {
        return settled;
    }
    let mut all = parts(|series| series.born.len());
    let bytes: u64 = all.iter().map(|part| part.bytes).sum();
    for part in &mut all {
        part.rate = lifetimes::Rate::new(
            open.rate.bytes().saturating_mul(u128::from(part.bytes)),
            open.rate.iterations().saturating_mul(u128::from(bytes)),
            Certainty::Mean,
        );
    }
    if !all.is_empty() {
        return all;
    }
    vec![Part {
        site: None,
        size: None,
        rate: open.rate,
        pattern: lifetimes::PartPattern::Mean,
        replaced: false,
        blocks: open.blocks,
        bytes: open.bytes,
    }]
}

/// Those that lose most by rounding down get one byte more, so that the sum is `total`.
fn apportion(rates: &[lifetimes::Rate], total: u64) -> Vec<u64> {
    let mut shares: Vec<u64> = rates
        .iter()
        .map(|rate| u64::try_from(rate.bytes() / rate.iterations()).unwrap_or(u64::MAX))
        .collect();
    let sum = shares.iter().fold(0u64, |sum, &share| sum.saturating_add(share));
    let lost = |at: usize| rates[at].approximate().fract();
    let mut order: Vec<usize> = (0..rates.len()).collect();
    order.sort_by(|&a, &b| lost(b).total_cmp(&lost(a)).then(a.cmp(&b)));
    let missing = usize::try_from(total.saturating_sub(sum)).unwrap_or(0);
    for &at in order.iter().take(missing) {
        shares[at] += 1;
    }
    shares
}

fn sum_of_sizes(history: &History) -> Series {
    let mut sizes = history.by_size().into_iter();
    let mut sum = sizes.next().unwrap_or_default();
    sum.block = None;
    for series in sizes {
        for (sum, series) in [
            (&mut sum.born, &series.born),
            (&mut sum.born_bytes, &series.born_bytes),
            (&mut sum.live, &series.live),
            (&mut sum.live_bytes, &series.live_bytes),
        ] {
            sum.iter_mut().zip(series).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
        }
    }
    sum
}

fn group(history: &History, series: &Series, shares: &[&Share], screen: usize) -> Group {
    // Blocks that stay are not replaced, even if the level alone suggests it, and blocks are not
    // replaced by larger ones if they always have the same size.
    let stays = 2 * series.born.iter().filter(|&&born| born > 0).count() >= series.born.len();
    let is_enlarged = !stays && !has_one_size(series);
    let readings = shares
        .iter()
        .map(|Share { part, rate, .. }| growing_reading(part, *rate, part.replaced && is_enlarged));
    let epoch = u64::from(history.epoch());
    // The first epoch without warm-up can begin later than the first measured iteration.
    let iterations_before =
        |entry: usize| (history.start() + entry) as u64 * epoch - u64::from(history.warmup());
    let reading = readings.reduce(Reading::merge).unwrap_or_else(|| {
        let mut reading = resting_reading(series);
        if reading.last > 0 {
            reading.last = iterations_before(reading.last as usize);
        }
        reading
    });
    // The first iterations if a block born in them is left, else those from the first one on.
    let length = series.born.len().min(screen);
    let most = series.born.len() - length;
    let first = series.born.iter().position(|&born| born > 0).unwrap_or(most);
    let from = if first < length { 0 } else { first.min(most) };
    let cut = |series: &[u64]| series[from..from + length].to_vec();
    let skipped = iterations_before(from);
    let shared = shares.first().and_then(|share| share.shared);
    Group {
        block: series.block,
        shared: shared.filter(|_| shares.iter().all(|share| share.shared == shared)),
        births: cut(&series.born),
        bytes: cut(&series.born_bytes),
        live: cut(&series.live),
        live_bytes: cut(&series.live_bytes),
        skipped: (skipped > 0).then_some(skipped),
        epoch: (epoch > 1).then_some(epoch),
        reading,
    }
}

/// True if the mean size of the live blocks never changes.
fn has_one_size(series: &Series) -> bool {
    let mut live = series.live.iter().zip(&series.live_bytes).filter(|&(&live, _)| live > 0);
    let Some((&blocks, &bytes)) = live.next() else { return true };
    live.all(|(&live, &of_live)| {
        u128::from(of_live) * u128::from(blocks) == u128::from(bytes) * u128::from(live)
    })
}

/// A long history only knows periods of whole epochs, and not what happens within an epoch.
fn set_shortest_period(part: &mut Part, epoch: u32) {
    let lifetimes::PartPattern::Exact { period } = part.pattern else { return };
    if epoch == 1 || !period.is_multiple_of(epoch) {
        return;
    }
    let rate = part.rate;
    let shortest = |iterations: u128| lifetimes::PartPattern::Exact {
        period: u32::try_from(iterations).unwrap_or(period),
    };
    part.pattern = match part.size {
        // Fewer iterations would not have whole blocks.
        Some(size) => {
            let iterations = rate.iterations().saturating_mul(u128::from(size));
            shortest(lifetimes::Rate::new(rate.bytes(), iterations, rate.certainty).iterations())
        }
        None if period != epoch => part.pattern,
        None if part.replaced => lifetimes::PartPattern::Mean,
        None => shortest(rate.iterations()),
    };
}

fn growing_reading(part: &Part, rate: u64, replaced: bool) -> Reading {
    let exactly = |period: u32| {
        let bytes = part.rate.bytes() * u128::from(period.max(1)) / part.rate.iterations();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    };
    let (pattern, period, bytes) = match part.pattern {
        lifetimes::PartPattern::Exact { period } if replaced => {
            (Pattern::Enlarged, period, exactly(period))
        }
        lifetimes::PartPattern::Exact { period: period @ 0..=1 } => {
            (Pattern::Steady, period, exactly(1))
        }
        lifetimes::PartPattern::Exact { period } => (Pattern::Periodic, period, exactly(period)),
        // The steps differ, so that none of them is given.
        lifetimes::PartPattern::Counted { .. } | lifetimes::PartPattern::Mean if replaced => {
            (Pattern::Enlarged, 1, 0)
        }
        lifetimes::PartPattern::Counted { .. } | lifetimes::PartPattern::Mean => {
            (Pattern::Irregular, 1, rate)
        }
        lifetimes::PartPattern::Growing { period, more } => (Pattern::Growing, period, more),
        lifetimes::PartPattern::Rising => (Pattern::Rising, 1, rate),
        lifetimes::PartPattern::Amortized { bytes, .. } => (Pattern::Amortized, 1, bytes),
    };
    Reading {
        pattern,
        bytes_per_iteration: rate,
        period: u64::from(period.max(1)),
        bytes,
        last: 0,
        groups: 1,
    }
}

fn resting_reading(series: &Series) -> Reading {
    let born: Vec<usize> = (0..series.born.len()).filter(|&at| series.born[at] > 0).collect();
    let settled = series.born.len().saturating_sub(1 + series.oldest_death);
    let is_one_block = series.block.is_none() && series.live.iter().all(|&live| live <= 1);
    // A block that a smaller one replaces depends on the last input, not on the largest.
    let sizes: Vec<u64> = series.live_bytes.iter().copied().filter(|&bytes| bytes > 0).collect();
    let is_one_buffer = is_one_block && sizes.is_sorted();
    let (pattern, last) = match born.last() {
        None => (Pattern::Once, 0),
        Some(&last) if is_one_buffer => (Pattern::Ratchet, last + 1),
        Some(&last) if born[0] >= settled => {
            let is_young = born[0] + 2 >= series.born.len();
            (if is_young { Pattern::LastKept } else { Pattern::Replaced }, last + 1)
        }
        Some(_) => {
            let events: Vec<usize> = born.into_iter().filter(|&at| at < settled).collect();
            let last = events.last().map_or(0, |&last| last + 1);
            (if events.len() == 1 { Pattern::Once } else { Pattern::Filled }, last)
        }
    };
    Reading {
        pattern,
        bytes_per_iteration: 0,
        period: 1,
        bytes: series.born_bytes.iter().sum(),
        last: last as u64,
        groups: 1,
    }
}
