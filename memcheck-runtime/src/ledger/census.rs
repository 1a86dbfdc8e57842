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
        let groups = groups(series, |census| &census.by_size, (space, first), |size| size);
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// The same by place: `place` says which place a context is, and contexts
    /// of one place make one group.
    pub(crate) fn survivors_by<P: Ord + Clone>(
        series: &[Self],
        space: Space,
        first: u32,
        place: impl FnMut(u32) -> P,
    ) -> Vec<(P, Group)> {
        groups(series, |census| &census.by_context, (space, first), place)
    }
}

/// The survivors of each kind that `name` makes one of, in the order of names.
fn groups<K: Copy + Eq + Hash + Ord, P: Ord + Clone>(
    series: &[Census],
    kinds: impl Fn(&Census) -> &Kinds<K>,
    (space, first): (Space, u32),
    mut name: impl FnMut(K) -> P,
) -> Vec<(P, Group)> {
    let Some(last) = series.last() else { return Vec::new() };
    let left: BTreeSet<P> = kinds(last)
        .each()
        .filter(|&(of, _, birth, _)| of == space && birth >= first)
        .map(|(_, kind, ..)| name(kind))
        .collect();
    let mut births: BTreeMap<P, Vec<Births>> =
        left.into_iter().map(|name| (name, vec![Births::new(); series.len()])).collect();
    if births.is_empty() {
        return Vec::new();
    }
    for (at, census) in series.iter().enumerate() {
        for (_, kind, birth, amount) in kinds(census).each().filter(|(of, ..)| *of == space) {
            if let Some(of_kind) = births.get_mut(&name(kind)) {
                of_kind[at].entry(birth).or_default().add(amount);
            }
        }
    }
    births.into_iter().filter_map(|(name, births)| Some((name, group(&births, first)?))).collect()
}

/// One group from its live blocks after each measured iteration; `None` where
/// none that was born in a measured iteration survives.
fn group(series: &[Births], first: u32) -> Option<Group> {
    let last = series.last()?;
    let born: Vec<Amount> = (first..)
        .take(series.len())
        .map(|iteration| last.get(&iteration).copied().unwrap_or_default())
        .collect();
    if born.iter().all(|amount| amount.count == 0) {
        return None;
    }
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
    Some(Group {
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
    })
}
