//! A census of live blocks, taken between iterations: by space, context, size and iteration of
//! birth. Usually it counts only the changes since the previous census.

use memcheck_limits::living::Living;
use memcheck_limits::space::Space;
use rustc_hash::FxHashMap;

use super::bucket::Words;
use crate::block::{Block, Origin};

/// The common properties of blocks that a census counts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockKind {
    pub space: Space,
    /// 0 in a run without attribution.
    pub context: u32,
    pub size: u64,
    /// The iteration of birth, counted from 1; 0 is the set-up.
    pub birth: u32,
}

impl BlockKind {
    pub fn living(&self, count: u64) -> Living {
        Living {
            site: (self.context != 0).then_some(self.context),
            size: self.size,
            born: self.birth.checked_sub(1),
            count,
        }
    }
}

/// The number of blocks of each kind.
pub type Census = FxHashMap<BlockKind, u64>;

/// Blocks that were added and removed between two censuses.
#[derive(Debug, Default)]
pub struct Changes {
    /// Live now, but not at the previous census.
    pub added: Census,
    /// Live at the previous census, but not now.
    pub removed: Census,
}

fn add(census: &mut Census, words: Words) {
    let Block { size, space, origin: Origin { birth, context, .. } } = Block::from_words(words);
    *census.entry(BlockKind { space, context, size, birth }).or_default() += 1;
}

impl Changes {
    /// The changes since the last call, or since the first block. Returns `None` if more blocks
    /// have died than the ledger can remember; all later calls then return `None` too, and the
    /// caller must use [`census`]. Allocates, so the caller must be quiet. Threads must not call it
    /// at the same time.
    ///
    /// The cost depends on the number of changes, not on the number of live blocks.
    pub fn take() -> Option<Self> {
        let mut changes = Self::default();
        super::BLOCKS.count_new(|words| add(&mut changes.added, words));
        super::DEATHS.take(|words| add(&mut changes.removed, words)).then_some(changes)
    }
}

/// Counts the live blocks of all spaces. Allocates, so the caller must be quiet.
pub fn census() -> Census {
    let mut census = Census::default();
    super::each_words(|_, words| add(&mut census, words));
    census
}
