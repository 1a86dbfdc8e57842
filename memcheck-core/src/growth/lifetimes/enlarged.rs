//! Finds buffers and pools whose capacity grows by a factor, among other blocks of the same call site.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::events::Look;
use super::group::KindGroup;
use super::history::History;
use super::judge_group::judge;
use super::kind::{Kind, contains};
use super::replaced::{Buffer, birth};
use super::state::State;

/// The fewest blocks of a buffer or a pool whose sizes rise by a factor.
const MIN_CHAIN: usize = 4;

/// The factors of a buffer can differ by this share, because capacities are rounded.
const BUFFER_TOLERANCE: f64 = 0.1;

/// Live blocks are not tied to each other by a death, so that sizes at random could pass for a pool.
const POOL_TOLERANCE: f64 = 0.001;

/// Among more live blocks of one call site, some rise by a factor by chance.
const MAX_CHUNKS: usize = 64;

/// A block that was born alone among those of its kind, and the entry of its birth.
#[derive(Clone, Copy)]
struct Single<'a> {
    kind: &'a Kind,
    born: usize,
}

impl Single<'_> {
    fn factor(&self, larger: &Self) -> f64 {
        larger.kind.size as f64 / self.kind.size.max(1) as f64
    }
}

/// The buffers and pools among `kinds` whose capacity grows by a factor. In a buffer each block dies in
/// the entry in which the next one is born; in a pool all live.
pub(super) fn enlarged<'a>(history: &History, kinds: &[&'a Kind], look: &Look) -> Vec<Buffer<'a>> {
    let single = kinds.iter().filter_map(|&kind| Some(Single { kind, born: birth(kind)? }));
    let (mut live, dead): (Vec<_>, Vec<_>) = single.partition(|block| block.kind.blocks.now > 0);
    let mut replaced = BTreeMap::<_, Vec<_>>::new();
    for block in dead {
        replaced.entry((block.kind.site, block.born + block.kind.age())).or_default().push(block);
    }
    // The last chunk of a pool comes before the others, which end shorter chains.
    live.sort_by_key(|block| Reverse(block.born));
    let mut chunks = BTreeMap::<_, Vec<_>>::new();
    for &block in &live {
        chunks.entry(block.kind.site).or_default().push(block);
    }
    chunks.retain(|_, chunks| chunks.len() <= MAX_CHUNKS);
    let mut found: Vec<Buffer<'a>> = Vec::new();
    for last in live {
        let buffer = chain(last, BUFFER_TOLERANCE, |later| {
            replaced.get(&(later.kind.site, later.born)).map_or(&[], Vec::as_slice)
        });
        let pool = || {
            chain(last, POOL_TOLERANCE, |later| {
                chunks.get(&later.kind.site).map_or(&[], Vec::as_slice)
            })
        };
        let chain = if buffer.len() < MIN_CHAIN { pool() } else { buffer };
        let is_known = |kind: &Kind| found.iter().any(|buffer| contains(&buffer.kinds, kind));
        if chain.len() < MIN_CHAIN || chain.iter().any(|block| is_known(block.kind)) {
            continue;
        }
        let kinds: Vec<&Kind> = chain.iter().map(|block| block.kind).collect();
        let growth = judge(&KindGroup::new(history, &kinds), look);
        let is_open = matches!(growth, State::Open { .. });
        if growth.is_quiet() || (is_open && look.is_last) {
            continue;
        }
        found.push(Buffer { kinds, growth });
    }
    found
}

/// The longest chain of blocks that ends with `last`, each larger than the one before by the same
/// factor, to within `tolerance`. `before` returns the blocks that can come before one.
fn chain<'a: 'b, 'b>(
    last: Single<'a>,
    tolerance: f64,
    before: impl Fn(&Single<'a>) -> &'b [Single<'a>],
) -> Vec<Single<'a>> {
    let smaller = |later: Single<'a>| {
        before(&later).iter().copied().filter(move |block| {
            block.born < later.born && (1.2..=4.5).contains(&block.factor(&later))
        })
    };
    let chains = smaller(last).map(|first| {
        let factor = first.factor(&last);
        let mut chain = vec![last, first];
        while let Some(&later) = chain.last() {
            let error = |block: &Single<'_>| (block.factor(&later) / factor - 1.0).abs();
            let nearest = smaller(later).min_by(|a, b| error(a).total_cmp(&error(b)));
            let Some(next) = nearest.filter(|block| error(block) <= tolerance) else { break };
            chain.push(next);
        }
        chain
    });
    chains.max_by_key(Vec::len).unwrap_or_default()
}

#[cfg(test)]
mod tests;
