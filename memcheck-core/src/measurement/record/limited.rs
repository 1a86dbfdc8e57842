//! The limits of a test that depend on the space and on the device of the test.

use super::Record;
use crate::limits::Limits;
use crate::space::Space;

impl Record {
    /// True if only limits of its own apply to a space, and no baseline: the C heap, the process,
    /// and the host in a test on a GPU.
    pub fn has_own_limits(&self, space: Space) -> bool {
        space.has_own_limit()
            || (matches!(space, Space::Host | Space::HostSmall) && self.is_of_gpu())
    }

    fn is_of_gpu(&self) -> bool {
        self.judged.iter().any(|space| space.is_device())
    }

    /// The limit of the growth of a space; `None` if its growth is not judged.
    pub fn max_growth_of(&self, space: Space, limits: &Limits) -> Option<u64> {
        growth_limit(limits, space, self.is_of_gpu())
    }
}

/// The limit of the growth of a space in a test on a GPU (`is_of_gpu`) or on the host; `None` if its
/// growth is not judged.
pub fn growth_limit(limits: &Limits, space: Space, is_of_gpu: bool) -> Option<u64> {
    match space {
        Space::Host | Space::HostSmall if is_of_gpu => limits.max_host_growth.value,
        _ => limits.max_growth_of(space),
    }
}

/// The limit of the bytes that blocks of the iterations may hold in a space; `None` if they are not
/// limited. As a limit of the peak, it holds for the device of the test.
pub fn kept_limit(limits: &Limits, space: Space, is_of_gpu: bool) -> Option<u64> {
    let is_of_device = !space.has_own_limit() && space.is_of_driver() == is_of_gpu;
    limits.max_kept.value.filter(|_| is_of_device)
}
