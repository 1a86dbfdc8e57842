//! A census of live blocks, taken between iterations: by space, context, size and
//! iteration of birth. Usually only the changes since the census before are counted.

use memcheck_core::lifetimes::Living;
use memcheck_core::space::Space;
use rustc_hash::FxHashMap;

use super::bucket::Words;
use crate::block::{Block, Origin};

/// Blocks of one kind that were born in the same iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Kind {
    pub(crate) space: Space,
    /// 0 in a run without attribution.
    pub(crate) context: u32,
    pub(crate) size: u64,
    /// The iteration of birth, counted from 1; 0 is the set-up.
    pub(crate) birth: u32,
}

impl Kind {
    /// `count` blocks of this kind.
    pub(crate) fn living(&self, count: u64) -> Living {
        Living {
            site: (self.context != 0).then_some(self.context),
            size: self.size,
            born: self.birth.checked_sub(1),
            count,
        }
    }
}

/// The number of blocks of each kind.
pub(crate) type Census = FxHashMap<Kind, u64>;

/// Blocks that came and went between two censuses.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Live now, and not at the census before.
    pub(crate) came: Census,
    /// Live at the census before, and not now.
    pub(crate) gone: Census,
}

fn add(census: &mut Census, words: Words) {
    let Block { size, space, origin: Origin { birth, context, .. } } = Block::of(words);
    *census.entry(Kind { space, context, size, birth }).or_default() += 1;
}

impl Changes {
    /// The changes since the last call, or since the first block. `None` if too many blocks
    /// have died for the ledger to remember, now and in all calls to come: then [`census`]
    /// is needed. Allocates: the caller is quiet. One thread at a time.
    ///
    /// Its cost depends on the number of changes, not on the number of live blocks.
    pub(crate) fn take() -> Option<Self> {
        let mut changes = Self::default();
        super::BLOCKS.count_new(|words| add(&mut changes.came, words));
        super::DEATHS.take(|words| add(&mut changes.gone, words)).then_some(changes)
    }
}

/// Counts the live blocks of all spaces. Allocates: the caller is quiet.
pub(crate) fn census() -> Census {
    let mut census = Census::default();
    super::each_in_words(|_, words| add(&mut census, words));
    census
}
