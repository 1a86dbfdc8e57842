//! A census of live blocks, taken between iterations: by space, context, size and
//! iteration of birth.

use memcheck_core::lifetimes::Living;
use memcheck_core::space::Space;
use rustc_hash::FxHashMap;

use crate::block::Origin;

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

/// The number of live blocks of each kind.
pub(crate) type Census = FxHashMap<Kind, u64>;

/// Counts the live blocks of `spaces`. Allocates: the caller is quiet.
pub(crate) fn census(spaces: impl Fn(Space) -> bool) -> Census {
    let mut census = Census::default();
    super::each(|_, block| {
        if spaces(block.space) {
            let Origin { birth, context, .. } = block.origin;
            let kind = Kind { space: block.space, context, size: block.size, birth };
            *census.entry(kind).or_default() += 1;
        }
    });
    census
}
