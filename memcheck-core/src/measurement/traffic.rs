//! The figures of an iteration that a limit judges: its allocations and their bytes.

use crate::limits::Limits;
use crate::measurement::record::SpaceRecord;

/// A figure of one iteration, of which the largest over the measured iterations is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// The number of allocations.
    Allocations,
    /// The bytes of these allocations, freed or not.
    Bytes,
}

impl Traffic {
    pub(crate) const ALL: [Self; 2] = [Self::Allocations, Self::Bytes];

    /// The name of the figure by which runs are compared.
    pub(crate) fn figure(self) -> &'static str {
        match self {
            Self::Allocations => "most_allocations",
            Self::Bytes => "most_allocated",
        }
    }

    /// The limit of the figure; `None` if it is not judged.
    pub(crate) fn limit(self, limits: &Limits) -> Option<u64> {
        match self {
            Self::Allocations => limits.max_allocations.value,
            Self::Bytes => limits.max_allocated.value,
        }
    }

    /// The largest figure of the measured iterations; `None` without iterations.
    pub(crate) fn most(self, measured: &SpaceRecord) -> Option<u64> {
        let series = match self {
            Self::Allocations => &measured.allocations,
            Self::Bytes => &measured.allocated_total,
        };
        series.iter().copied().max()
    }
}
