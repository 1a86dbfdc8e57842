//! A census of live blocks, taken between iterations: by space and size, and
//! in a run with attribution by space and context.
//!
//! What was there before the measured iterations hardly ever changes. So a
//! census shares that part with the one before it as long as it is the same,
//! and costs memory only for what the iterations leave behind.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::Arc;

use memcheck_core::space::Space;
use memcheck_core::survivors::Group;
use rustc_hash::FxHashMap;

use crate::block::Origin;

/// Live blocks after one iteration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Census {
    by_size: Kinds<u64>,
    by_context: Kinds<u32>,
}

/// Live blocks of each kind.
#[derive(Debug, Clone)]
struct Kinds<K> {
    /// Born before the measured iterations.
    old: Arc<Amounts<K>>,
    /// Born in them.
    new: Amounts<K>,
}

/// Which blocks of a census are meant.
type Read<K> = fn(&Census) -> &Kinds<K>;

/// By space, kind and iteration of birth.
type Amounts<K> = FxHashMap<(Space, K, u32), Amount>;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    count: u64,
    bytes: u64,
    /// The one size that all of them have.
    size: Size,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Size {
    #[default]
    Unseen,
    Alike(u64),
    Different,
}

impl Size {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unseen, size) | (size, Self::Unseen) => size,
            (one, two) if one == two => one,
            _ => Self::Different,
        }
    }
}

impl Amount {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.size = self.size.and(other.size);
    }
}

impl<K> Default for Kinds<K> {
    fn default() -> Self {
        Self { old: Arc::default(), new: Amounts::default() }
    }
}

impl<K: Copy + Eq + Hash + Ord> Kinds<K> {
    /// Those of `blocks`, given the census before.
    fn count(
        blocks: impl Iterator<Item = ((Space, K, u32), u64)>,
        first: u32,
        before: &Self,
    ) -> Self {
        let mut old = Amounts::with_capacity_and_hasher(before.old.len(), Default::default());
        let mut new = Amounts::default();
        for (key, size) in blocks {
            let amounts = if key.2 < first { &mut old } else { &mut new };
            amounts.entry(key).or_default().add(Amount {
                count: 1,
                bytes: size,
                size: Size::Alike(size),
            });
        }
        let old = if *before.old == old { Arc::clone(&before.old) } else { Arc::new(old) };
        Self { old, new }
    }

    fn each(&self) -> impl Iterator<Item = (Space, K, u32, Amount)> {
        let all = self.old.iter().chain(&self.new);
        all.map(|(&(space, kind, birth), &amount)| (space, kind, birth, amount))
    }
}

/// Live blocks by iteration of birth.
type Births = BTreeMap<u32, Amount>;

/// Those that were born in `latest` or before.
fn until(births: &Births, latest: u32) -> Amount {
    births.range(..=latest).fold(Amount::default(), |mut sum, (_, amount)| {
        sum.add(*amount);
        sum
    })
}

/// Counts what is live. `first` is the first measured iteration, `before` the
/// census after the one before. Allocates: the caller is quiet.
pub(crate) fn census(first: u32, before: Option<&Census>) -> Census {
    let mut blocks = Vec::new();
    super::each(|_, block| blocks.push(block));
    let none = Census::default();
    let before = before.unwrap_or(&none);
    let sizes =
        blocks.iter().map(|block| ((block.space, block.size, block.origin.birth), block.size));
    let contexts = blocks.iter().filter(|block| block.origin.context != 0).map(|block| {
        let Origin { birth, context, .. } = block.origin;
        ((block.space, context, birth), block.size)
    });
    Census {
        by_size: Kinds::count(sizes, first, &before.by_size),
        by_context: Kinds::count(contexts, first, &before.by_context),
    }
}

impl Census {
    /// Spaces with live blocks.
    #[cfg(test)]
    pub(crate) fn spaces(&self) -> impl Iterator<Item = Space> {
        self.by_size.each().map(|(space, ..)| space)
    }

    /// The survivors in `space` that were born in measured iterations, by
    /// block size. `series` is a census after each measured iteration, the
    /// last of them this one; `first` is the first measured iteration.
    pub(crate) fn survivors(series: &[Self], space: Space, first: u32) -> Vec<Group> {
        let sizes: Read<u64> = |census| &census.by_size;
        let left = left(series, sizes, (space, first));
        let groups = groups(series, sizes, (space, first), &left);
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// The same by context. If there are any survivors, blocks of the other contexts
    /// are in it as well, because some of them may read alike.
    pub(crate) fn survivors_by_context(
        series: &[Self],
        space: Space,
        first: u32,
    ) -> Vec<(u32, Group)> {
        let contexts: Read<u32> = |census| &census.by_context;
        if left(series, contexts, (space, first)).is_empty() {
            return Vec::new();
        }
        let all = series.iter().flat_map(|census| census.by_context.each());
        let all = all.filter(|(of, ..)| *of == space).map(|(_, context, ..)| context).collect();
        groups(series, contexts, (space, first), &all)
    }
}

/// The kinds of which blocks of measured iterations survive.
fn left<K: Copy + Eq + Hash + Ord>(
    series: &[Census],
    kinds: Read<K>,
    (space, first): (Space, u32),
) -> BTreeSet<K> {
    let last = series.last().into_iter().flat_map(|last| kinds(last).each());
    last.filter(|&(of, _, birth, _)| of == space && birth >= first)
        .map(|(_, kind, ..)| kind)
        .collect()
}

/// The groups of these kinds, in order.
fn groups<K: Copy + Eq + Hash + Ord>(
    series: &[Census],
    kinds: Read<K>,
    (space, first): (Space, u32),
    wanted: &BTreeSet<K>,
) -> Vec<(K, Group)> {
    let mut births: BTreeMap<K, Vec<Births>> =
        wanted.iter().map(|&kind| (kind, vec![Births::new(); series.len()])).collect();
    for (at, census) in series.iter().enumerate() {
        for (_, kind, birth, amount) in kinds(census).each().filter(|(of, ..)| *of == space) {
            if let Some(of_kind) = births.get_mut(&kind) {
                of_kind[at].entry(birth).or_default().add(amount);
            }
        }
    }
    births.into_iter().map(|(kind, births)| (kind, group(&births, first))).collect()
}

/// One group from its live blocks after each measured iteration.
fn group(series: &[Births], first: u32) -> Group {
    let last = |iteration| series.last().and_then(|last| last.get(&iteration));
    let born: Vec<Amount> = (first..)
        .take(series.len())
        .map(|iteration| last(iteration).copied().unwrap_or_default())
        .collect();
    let until = |latest: fn(u32) -> Option<u32>| -> Vec<Amount> {
        (first..)
            .zip(series)
            .map(|(now, births)| {
                latest(now).map_or_else(Amount::default, |latest| until(births, latest))
            })
            .collect()
    };
    let (live, old) = (until(|_| Some(u32::MAX)), until(|now| now.checked_sub(2)));
    let counts = |series: &[Amount]| series.iter().map(|amount| amount.count).collect();
    let bytes = |series: &[Amount]| series.iter().map(|amount| amount.bytes).collect();
    let size = live.iter().fold(Size::Unseen, |size, amount| size.and(amount.size));
    Group {
        block: match size {
            Size::Alike(size) => Some(size),
            _ => None,
        },
        births: counts(&born),
        bytes: bytes(&born),
        live: counts(&live),
        live_bytes: bytes(&live),
        old: counts(&old),
        old_bytes: bytes(&old),
    }
}
