//! A census of live blocks by space and size, taken between iterations.

use std::collections::BTreeMap;

use memcheck_core::space::Space;
use memcheck_core::survivors::Group;

use super::table;

/// Live blocks by space and block size: how many, by iteration of birth.
#[derive(Debug, Clone, Default)]
pub(crate) struct Census {
    by_size: BTreeMap<(Space, u64), BTreeMap<u32, u64>>,
}

/// Counts what is live. Allocates: the caller is quiet.
pub(crate) fn census() -> Census {
    let mut census = Census::default();
    table::each(|block| {
        let births = census.by_size.entry((block.space, block.size)).or_default();
        *births.entry(block.birth).or_default() += 1;
    });
    census
}

impl Census {
    /// Spaces with live blocks.
    #[cfg(test)]
    pub(crate) fn spaces(&self) -> impl Iterator<Item = Space> {
        self.by_size.keys().map(|(space, _)| *space)
    }

    /// Blocks of this space and size that were born in `latest` or before.
    fn count(&self, key: (Space, u64), latest: u32) -> u64 {
        self.by_size.get(&key).map_or(0, |births| births.range(..=latest).map(|(_, n)| n).sum())
    }

    /// The survivors in `space` that were born in measured iterations, by
    /// block size. `series` is a census after each measured iteration, the
    /// last of them this one; `first` is the first measured iteration.
    pub(crate) fn survivors(series: &[Self], space: Space, first: u32) -> Vec<Group> {
        let Some(last) = series.last() else { return Vec::new() };
        last.by_size
            .range((space, 0)..=(space, u64::MAX))
            .filter_map(|(&key, births)| {
                let births: Vec<u64> = (first..)
                    .take(series.len())
                    .map(|iteration| births.get(&iteration).copied().unwrap_or(0))
                    .collect();
                births.iter().any(|&count| count > 0).then(|| {
                    let live = series.iter().map(|census| census.count(key, u32::MAX)).collect();
                    let old = (first..)
                        .zip(series)
                        .map(|(now, census)| match now.checked_sub(2) {
                            Some(latest) => census.count(key, latest),
                            None => 0,
                        })
                        .collect();
                    Group::of_size(key.1, births, live, old)
                })
            })
            .collect()
    }
}
