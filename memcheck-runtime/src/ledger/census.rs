//! A census of live blocks, taken between iterations: by space and size, and
//! in a run with attribution by space and context.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use memcheck_core::space::Space;
use memcheck_core::survivors::Group;

use super::Origin;

/// Live blocks of each kind, by iteration of birth.
#[derive(Debug, Clone, Default)]
pub(crate) struct Census {
    by_size: BTreeMap<(Space, u64), Births>,
    by_context: BTreeMap<(Space, u32), Births>,
}

/// Live blocks by iteration of birth.
#[derive(Debug, Clone, Default)]
struct Births {
    born: BTreeMap<u32, Amount>,
    /// The one size that all of them have.
    size: Size,
}

#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    count: u64,
    bytes: u64,
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

impl Births {
    fn add(&mut self, birth: u32, size: u64) {
        let amount = self.born.entry(birth).or_default();
        amount.count += 1;
        amount.bytes += size;
        self.size = self.size.and(Size::Alike(size));
    }

    fn merge(&mut self, other: &Self) {
        for (&birth, amount) in &other.born {
            let sum = self.born.entry(birth).or_default();
            sum.count += amount.count;
            sum.bytes += amount.bytes;
        }
        self.size = self.size.and(other.size);
    }

    /// Those that were born in `latest` or before.
    fn until(&self, latest: u32) -> Amount {
        self.born.range(..=latest).fold(Amount::default(), |sum, (_, amount)| Amount {
            count: sum.count + amount.count,
            bytes: sum.bytes + amount.bytes,
        })
    }
}

/// Counts what is live. Allocates: the caller is quiet.
pub(crate) fn census() -> Census {
    let mut census = Census::default();
    super::each(|_, block| {
        let Origin { birth, context, .. } = block.origin;
        census.by_size.entry((block.space, block.size)).or_default().add(birth, block.size);
        if context != 0 {
            census.by_context.entry((block.space, context)).or_default().add(birth, block.size);
        }
    });
    census
}

impl Census {
    /// Spaces with live blocks.
    #[cfg(test)]
    pub(crate) fn spaces(&self) -> impl Iterator<Item = Space> {
        self.by_size.keys().map(|(space, _)| *space)
    }

    /// The survivors in `space` that were born in measured iterations, by
    /// block size. `series` is a census after each measured iteration, the
    /// last of them this one; `first` is the first measured iteration.
    pub(crate) fn survivors(series: &[Self], space: Space, first: u32) -> Vec<Group> {
        let Some(last) = series.last() else { return Vec::new() };
        last.by_size
            .range((space, 0)..=(space, u64::MAX))
            .filter_map(|(key, _)| {
                let births: Vec<Option<&Births>> =
                    series.iter().map(|census| census.by_size.get(key)).collect();
                group(&births, first)
            })
            .collect()
    }

    /// The same by place: `place` says which place a context is, and contexts
    /// of one place make one group.
    pub(crate) fn survivors_by<P: Ord>(
        series: &[Self],
        space: Space,
        first: u32,
        mut place: impl FnMut(u32) -> P,
    ) -> Vec<(P, Group)> {
        let mut places: BTreeMap<P, Vec<Births>> = BTreeMap::new();
        for (at, census) in series.iter().enumerate() {
            for (&(_, context), births) in census.by_context.range((space, 0)..=(space, u32::MAX)) {
                let of_place = match places.entry(place(context)) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(vec![Births::default(); series.len()]),
                };
                of_place[at].merge(births);
            }
        }
        places
            .into_iter()
            .filter_map(|(place, births)| {
                let births: Vec<Option<&Births>> = births.iter().map(Some).collect();
                Some((place, group(&births, first)?))
            })
            .collect()
    }
}

/// One group from its live blocks after each measured iteration; `None` where
/// none that was born in a measured iteration survives.
fn group(series: &[Option<&Births>], first: u32) -> Option<Group> {
    let last = (*series.last()?)?;
    let born: Vec<Amount> = (first..)
        .take(series.len())
        .map(|iteration| last.born.get(&iteration).copied().unwrap_or_default())
        .collect();
    if born.iter().all(|amount| amount.count == 0) {
        return None;
    }
    let until = |latest: fn(u32) -> Option<u32>| -> Vec<Amount> {
        (first..)
            .zip(series)
            .map(|(now, births)| match (latest(now), births) {
                (Some(latest), Some(births)) => births.until(latest),
                _ => Amount::default(),
            })
            .collect()
    };
    let (live, old) = (until(|_| Some(u32::MAX)), until(|now| now.checked_sub(2)));
    let counts = |series: &[Amount]| series.iter().map(|amount| amount.count).collect();
    let bytes = |series: &[Amount]| series.iter().map(|amount| amount.bytes).collect();
    let size = series.iter().flatten().fold(Size::Unseen, |size, births| size.and(births.size));
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
