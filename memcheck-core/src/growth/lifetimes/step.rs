//! One look at a history: decides, or returns the number of iterations until the next look.

use std::cell::OnceCell;
use std::slice;

use super::decision::{Budget, Decision, Leak, Open, Part, PartPattern, Undecided};
use super::events::Look;
use super::group::{KindGroup, is_unchanged};
use super::history::History;
use super::kind::{Kind, contains};
use super::progression::progression;
use super::rate::{Certainty, Rate};
use super::replaced::buffers;
use super::separate::separate;
use super::tables::is_table_of_a_cache;
use super::tree::{Growing, Node, add_growth, judge_by_site, judge_by_size, rises};

/// Judges a history, at a cost of kinds times entries. The next look should come after the further
/// iterations of [`Decision::More`], because an earlier one would not decide.
pub fn step(history: &History, budget: &Budget) -> Decision {
    let done = history.iterations();
    let look = Look::new(budget, done, history.epoch());
    let separated = OnceCell::new();
    let (moving, node) = judge_kinds(history, &separated, &look);
    let entries = history.entries().saturating_sub(history.start());
    let node = match node {
        // No kind has moved, but the run is too short to call it quiet.
        Node::Clean if moving.is_empty() && entries <= look.quiet => {
            Node::Open { open: Open::Moves, until: look.quiet + 1, kinds: Vec::new() }
        }
        Node::Leak { parts, .. } if look.is_last && are_tables(history, &parts, &moving, &look) => {
            let is_table = |kind: &&Kind| parts.iter().any(|part| contains(&part.kinds, kind));
            let kinds = moving.iter().copied().filter(|kind| !is_table(kind)).collect();
            Node::Open { open: Open::Slows, until: 0, kinds }
        }
        node => node,
    };
    match node {
        Node::Clean => Decision::Clean { quiet_for: quiet_for(history, &moving) },
        Node::Leak { parts, is_whole, until } => {
            let is_early = done < budget.least.min(budget.most);
            if !is_early && is_whole && parts.iter().all(Growing::is_proved) {
                return leak(history, parts, true);
            }
            let proved = proved_parts(&parts);
            if !is_early && outweighs(history, &proved, &moving, &look) {
                return leak(history, proved, true);
            }
            // A cache that fills slowly has been undiminished so far.
            if look.is_last {
                leak(history, parts, is_whole)
            } else {
                Decision::More(next_look(history, budget, until))
            }
        }
        Node::Open { open, kinds, .. } if look.is_last => {
            Decision::Open(undecided(history, open, &kinds))
        }
        Node::Open { until, .. } => Decision::More(next_look(history, budget, until)),
    }
}

fn are_tables(history: &History, parts: &[Growing<'_>], moving: &[&Kind], look: &Look) -> bool {
    parts.iter().all(|part| is_table_of_a_cache(history, part, moving, look))
}

/// A proved leak whose live bytes are at least this many times those of all other settled blocks is
/// reported at once, and the others are left out of its rate. They are taken for the container that
/// keeps the leaked blocks: it grows at longer and longer intervals, so its rate is never exact.
const MIN_WEIGHT_RATIO: u64 = 16;

/// The most blocks of such containers. A second leak has left more blocks, however rare it is.
const MAX_CONTAINER_BLOCKS: u64 = 2;

fn proved_parts<'a>(parts: &[Growing<'a>]) -> Vec<Growing<'a>> {
    parts.iter().filter(|part| part.is_proved()).cloned().collect()
}

/// True if nearly all settled blocks of the measured iterations belong to these parts, and the others
/// are no buffer that grows evenly.
fn outweighs(history: &History, parts: &[Growing<'_>], moving: &[&Kind], look: &Look) -> bool {
    let kinds: Vec<&Kind> = parts.iter().flat_map(|part| part.kinds.clone()).collect();
    let (_, own) = live(history, &kinds);
    let is_other = |kind: &&Kind| !contains(&kinds, kind);
    let others: Vec<&Kind> = moving.iter().copied().filter(is_other).collect();
    let (blocks, bytes) = others.iter().fold((0u64, 0u64), |(blocks, bytes), kind| {
        let (of_kind, size) = settled(history, kind);
        (blocks.saturating_add(of_kind), bytes.saturating_add(size))
    });
    own > 0
        && blocks <= MAX_CONTAINER_BLOCKS
        && bytes <= own / MIN_WEIGHT_RATIO
        && buffers(history, &others, look).is_empty()
}

/// Number and bytes of the settled blocks of a kind that were born in measured iterations.
fn settled(history: &History, kind: &Kind) -> (u64, u64) {
    let group = KindGroup::new(history, &[kind]);
    let sum = |series: &[i64]| -> u64 {
        series[..group.settled()].iter().fold(0, |sum, left| sum + left.unsigned_abs())
    };
    (sum(&group.blocks), sum(&group.left))
}

/// The kinds that can change the verdict, and the verdict. Blocks that rise evenly are judged apart from
/// the others, unless the blocks that stay are decided together with them: the list that keeps such
/// blocks has had some of their sizes.
fn judge_kinds<'a>(
    history: &'a History,
    separated: &'a OnceCell<Vec<Vec<Kind>>>,
    look: &Look,
) -> (Vec<&'a Kind>, Node<'a>) {
    let is_moving = |kind: &&Kind| !is_unchanged(history, kind);
    let kinds = history.kinds.iter().chain(&history.shared);
    let moving: Vec<&Kind> = kinds.filter(is_moving).collect();
    let together = judge_trees(history, &moving, look);
    if matches!(together, Node::Clean) || together.is_exact() || together.shows_blocks() {
        return (moving, together);
    }
    let separated = separated.get_or_init(|| history.kinds.iter().map(separate).collect());
    let alone = history.kinds.iter().zip(separated).flat_map(|(kind, separated)| {
        if separated.is_empty() { slice::from_ref(kind) } else { &separated[..] }
    });
    let alone: Vec<&Kind> = alone.chain(&history.shared).filter(is_moving).collect();
    let (mut rising, mut others) = (Vec::new(), alone.clone());
    while let Some((run, growth)) = progression(history, &others, look) {
        others.retain(|kind| !contains(&run, kind));
        rising.push((run, growth));
    }
    if rising.is_empty() {
        return (moving, together);
    }
    (alone, add_growth(judge_trees(history, &others, look), rising))
}

fn judge_trees<'a>(history: &History, kinds: &[&'a Kind], look: &Look) -> Node<'a> {
    if kinds.is_empty() {
        return Node::Clean;
    }
    let has_sites = kinds.iter().any(|kind| kind.site.is_some());
    if !has_sites {
        return judge_by_size(history, kinds, look);
    }
    // Call sites come first: if both are exact, a place in the program is more useful than a size.
    let sites = judge_by_site(history, kinds, look);
    let outweighs = match &sites {
        Node::Leak { parts, .. } => outweighs(history, &proved_parts(parts), kinds, look),
        Node::Clean | Node::Open { .. } => false,
    };
    if outweighs || sites.is_exact() {
        return sites;
    }
    let sizes = judge_by_size(history, kinds, look);
    if sizes.is_exact() {
        return sizes;
    }
    match (sizes, sites) {
        (leak, Node::Clean) | (Node::Clean, leak) if leak.has_rhythm() => leak,
        (open @ Node::Open { open: Open::GoesOn, .. }, Node::Clean)
        | (Node::Clean, open @ Node::Open { open: Open::GoesOn, .. })
            if !look.is_last =>
        {
            open
        }
        (Node::Clean, sites) if is_hidden(history, &sites, look) => sites,
        (Node::Clean, _) | (_, Node::Clean) => Node::Clean,
        (sizes @ Node::Leak { is_whole: true, .. }, Node::Leak { is_whole: false, .. }) => sizes,
        (_, sites @ Node::Leak { .. }) => sites,
        (sizes @ Node::Leak { .. }, _) => sizes,
        (_, sites) => sites,
    }
}

/// True if call sites show a buffer that is enlarged: each of its sizes is born once, so that sizes
/// are judged together with all other blocks whose sizes are as rare, which can hide it.
fn is_hidden(history: &History, sites: &Node<'_>, look: &Look) -> bool {
    match sites {
        Node::Clean => false,
        Node::Leak { is_whole, .. } => *is_whole && !sites.is_random(),
        Node::Open { kinds, .. } => !look.is_last && rises(history, sites, kinds),
    }
}

fn next_look(history: &History, budget: &Budget, until: usize) -> u32 {
    let done = history.iterations();
    let epoch = u64::from(history.epoch());
    let start = history.start() as u64 * epoch;
    let until = u32::try_from(start + until as u64 * epoch).unwrap_or(u32::MAX);
    iterations_until(until, done, history.warmup(), budget)
}

/// The number of iterations to the next look, which can help after `until` iterations.
pub(super) fn iterations_until(until: u32, done: u32, warmup: u32, budget: &Budget) -> u32 {
    // At least a tenth more, so that there are few looks; at most half, so that an early verdict
    // does not wait long. The verdict on a flat program can be waited for at once.
    let flat = warmup.saturating_add(budget.quiet).saturating_add(1);
    let most = (done / 2).max(flat.saturating_sub(done)).max(1);
    let least = (done / 10).max(1).min(most);
    until.saturating_sub(done).clamp(least, most).min(budget.most.saturating_sub(done)).max(1)
}

/// All measured iterations if no settled birth has live blocks.
fn quiet_for(history: &History, kinds: &[&Kind]) -> u32 {
    let group = KindGroup::new(history, kinds);
    let last = group.left[..group.settled()].iter().rposition(|&left| left > 0);
    let entries = group.len() - last.map_or(0, |last| last + 1);
    (entries as u32).saturating_mul(history.epoch())
}

fn leak(history: &History, growing: Vec<Growing<'_>>, is_whole: bool) -> Decision {
    let mut parts: Vec<Part> = growing.iter().flat_map(|growing| parts(history, growing)).collect();
    parts.retain(|part| !part.rate.is_zero());
    parts.sort_by(|a, b| {
        b.rate
            .partial_cmp(&a.rate)
            .unwrap_or(std::cmp::Ordering::Equal)
            .then((a.site, a.size).cmp(&(b.site, b.size)))
    });
    Decision::Leak(Leak {
        rate: Rate::sum(parts.iter().map(|part| &part.rate)),
        whole: is_whole,
        through: history.iterations(),
        parts,
    })
}

/// Each part has the blocks and bytes of the whole group.
fn parts(history: &History, growing: &Growing<'_>) -> Vec<Part> {
    let Some(first) = growing.kinds.first() else { return Vec::new() };
    let is_alike = growing.kinds.iter().all(|kind| kind.size == first.size && kind.bytes.is_none());
    let is_one_site = growing.kinds.iter().all(|kind| kind.site == first.site);
    let (blocks, bytes) = live(history, &growing.kinds);
    let epoch = history.epoch();
    let parts = growing.growth.iter().map(|growth| Part {
        site: first.site.filter(|_| is_one_site),
        size: is_alike.then_some(first.size),
        rate: growth.rate.per(epoch),
        pattern: pattern_in_iterations(growth.pattern, epoch),
        replaced: growth.is_replaced,
        blocks,
        bytes,
    });
    parts.collect()
}

fn pattern_in_iterations(pattern: PartPattern, epoch: u32) -> PartPattern {
    let iterations = |entries: u32| entries.saturating_mul(epoch);
    match pattern {
        PartPattern::Exact { period } => PartPattern::Exact { period: iterations(period) },
        PartPattern::Counted { period, blocks } => {
            PartPattern::Counted { period: iterations(period), blocks }
        }
        PartPattern::Mean | PartPattern::Rising => pattern,
        PartPattern::Growing { period, more } => {
            PartPattern::Growing { period: iterations(period), more }
        }
        PartPattern::Amortized { bytes, distance } => {
            PartPattern::Amortized { bytes, distance: iterations(distance) }
        }
    }
}

/// Number and bytes of live blocks that were born in measured iterations.
fn live(history: &History, kinds: &[&Kind]) -> (u64, u64) {
    let start = history.start();
    let sum = |series: &[u64], from: usize, factor: u64| {
        let measured = series.iter().skip(start.saturating_sub(from));
        measured.fold(0u64, |sum, &left| sum.saturating_add(left.saturating_mul(factor)))
    };
    kinds.iter().fold((0, 0), |(blocks, bytes), kind| {
        let (tally, factor) = kind.in_bytes();
        let of_kind = sum(&tally.left, kind.from, factor);
        (
            u64::saturating_add(blocks, sum(&kind.blocks.left, kind.from, 1)),
            u64::saturating_add(bytes, of_kind),
        )
    })
}

fn undecided(history: &History, open: Open, kinds: &[&Kind]) -> Undecided {
    let (blocks, bytes) = live(history, kinds);
    let measured = history.iterations().saturating_sub(history.warmup());
    let least = least_growth(&KindGroup::new(history, kinds));
    let rate = Rate::new(u128::from(least), u128::from(measured), Certainty::Mean);
    let open = if least == 0 && open == Open::GoesOn { Open::Moves } else { open };
    Undecided { open, through: history.iterations(), blocks, bytes, rate }
}

/// Bytes that are left if all blocks that can still die do: those of settled blocks, or the rise of
/// the floor since containers have filled, whichever is more. The floor is the lowest level in as
/// many entries as a block can live.
pub(super) fn least_growth(group: &KindGroup) -> u64 {
    let age = group.age.clamp(1, group.len().max(1));
    let settled =
        group.left[..group.settled()].iter().fold(0i64, |sum, &left| sum.saturating_add(left));
    let floor = |level: Option<&[i64]>| level.and_then(|level| level.iter().min()).copied();
    let filled = floor(group.live.get(age..2 * age)).or(group.live.first().copied());
    let last = floor(group.live.get(group.len().saturating_sub(age)..));
    let rise = last.zip(filled).map_or(0, |(last, filled)| last - filled);
    settled.max(rise).max(0).unsigned_abs()
}
