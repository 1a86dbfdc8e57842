//! The bytes that blocks of the iterations hold, for a test that allows so many of them
//! (`max_kept`). Up to the limit, growth is that of a cache that fills, and is not judged.

use std::collections::BTreeMap;

use memcheck_core::growth::lifetimes::{Decision, History};
use memcheck_core::growth::survivors::{Grown, Growth};
use memcheck_core::limits::Limits;
use memcheck_core::measurement::record::kept_limit;
use memcheck_core::space::Space;

/// The most bytes that blocks of the iterations have held after one of them.
#[derive(Debug)]
pub(super) struct Kept {
    limits: Limits,
    most: BTreeMap<Space, u64>,
}

impl Kept {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { limits: limits.clone(), most: BTreeMap::new() }
    }

    /// Adds the blocks that are live after an iteration.
    pub(super) fn add(&mut self, space: Space, history: &History) {
        if self.limits.max_kept.value.is_some() {
            let most = self.most.entry(space).or_default();
            *most = history.kept_bytes().max(*most);
        }
    }

    /// The figure of a space; `None` if the test does not limit it.
    pub(super) fn most(&self, space: Space, is_of_gpu: bool) -> Option<u64> {
        kept_limit(&self.limits, space, is_of_gpu)?;
        Some(self.most.get(&space).copied().unwrap_or(0))
    }

    /// The bytes up to the limit; `None` if there is no limit, or if the space is beyond it.
    fn left(&self, space: Space, is_of_gpu: bool) -> Option<u64> {
        kept_limit(&self.limits, space, is_of_gpu)?.checked_sub(self.most(space, is_of_gpu)?)
    }

    /// True if the growth of a space is not judged, because it has not passed the limit.
    pub(super) fn allows(&self, space: Space, is_of_gpu: bool) -> bool {
        self.left(space, is_of_gpu).is_some()
    }

    /// The number of iterations after which a space that leaks has passed the limit, if it goes on
    /// at the same rate.
    pub(super) fn iterations_left(
        &self,
        (space, is_of_gpu): (Space, bool),
        decision: &Decision,
    ) -> u32 {
        let (Some(left), Decision::Leak(leak)) = (self.left(space, is_of_gpu), decision) else {
            return 0;
        };
        let iterations = u128::from(left + 1).saturating_mul(leak.rate.iterations());
        let number = iterations.div_ceil(leak.rate.bytes().max(1));
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The growth of a space that has not passed the limit: none after the last iteration that is
    /// allowed, and unknown before, because the space can still pass it.
    pub(super) fn judge(
        &self,
        (space, is_of_gpu): (Space, bool),
        mut grown: Grown,
        (iterations, is_last): (u32, bool),
    ) -> Grown {
        let is_open = matches!(grown.growth, Growth::Found { .. } | Growth::Undecided { .. });
        if !is_open || !self.allows(space, is_of_gpu) {
            return grown;
        }
        grown.growth = if is_last { Growth::Quiet { iterations } } else { Growth::Unknown };
        grown.bytes_per_iteration = 0;
        for group in grown.by_size.iter_mut().chain(grown.by_site.values_mut()) {
            group.reading.bytes_per_iteration = 0;
        }
        grown
    }
}
