//! The figures of one iteration, and their comparison with those of an iteration in which no
//! allocation was refused.

use std::collections::BTreeMap;

use memcheck_core::space::Space;
use memcheck_ledger::{self as ledger, CounterSnapshot, block};

/// The state of every space that counts.
pub(super) fn snapshots() -> BTreeMap<Space, CounterSnapshot> {
    let counts = |space: &Space| *space != Space::HostSmall && !space.has_own_limit();
    block::spaces().filter(counts).map(|space| (space, ledger::snapshot(space))).collect()
}

/// The figures of one iteration in one space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct IterationFigures {
    /// The bytes that it left.
    pub(super) left: u64,
    allocations: u64,
    allocated_total: u64,
    /// The peak above the bytes that were live before.
    peak: u64,
}

/// The figures by space. The host has only the bytes left, because its other figures can depend on
/// threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MeasuredIteration(BTreeMap<Space, IterationFigures>);

impl MeasuredIteration {
    pub(super) fn between(
        before: &BTreeMap<Space, CounterSnapshot>,
        after: &BTreeMap<Space, CounterSnapshot>,
    ) -> Self {
        let figures = |(space, now): (&Space, &CounterSnapshot)| {
            let before = before.get(space).copied().unwrap_or_default();
            let left = now.live.saturating_sub(before.live);
            let figures = match space.is_of_driver() {
                true => IterationFigures {
                    left,
                    allocations: now.allocations - before.allocations,
                    allocated_total: now.allocated_total - before.allocated_total,
                    // Above the live bytes, because blocks that an earlier refusal has left raise
                    // every later peak.
                    peak: now.iteration_peak.saturating_sub(before.live),
                },
                false => IterationFigures { left, ..IterationFigures::default() },
            };
            (*space, figures)
        };
        Self(after.iter().map(figures).collect())
    }

    /// The same as far as iterations must agree: without the host.
    fn of_devices(&self) -> impl Iterator<Item = (&Space, &IterationFigures)> {
        self.0.iter().filter(|(space, _)| space.is_of_driver())
    }

    pub(super) fn is_alike(&self, other: &Self) -> bool {
        self.of_devices().eq(other.of_devices())
    }

    /// The first figure that differs: its space, its name, and its value in `self` and in `after`.
    pub(super) fn difference(&self, after: &Self) -> Option<(Space, &'static str, u64, u64)> {
        self.of_devices().find_map(|(space, before)| {
            let after = after.0.get(space).copied().unwrap_or_default();
            let pairs = [
                ("allocations", before.allocations, after.allocations),
                ("allocated_total", before.allocated_total, after.allocated_total),
                ("peak_allocated", before.peak, after.peak),
                ("growth", before.left, after.left),
            ];
            let (name, before, after) = pairs.into_iter().find(|(_, a, b)| a != b)?;
            Some((*space, name, before, after))
        })
    }

    /// The bytes by space that are live now in addition to those before, beyond the bytes that two
    /// iterations like this one leave.
    pub(super) fn left_since(
        &self,
        before: &BTreeMap<Space, CounterSnapshot>,
    ) -> BTreeMap<Space, u64> {
        let excess = |(space, before): (&Space, &CounterSnapshot)| {
            // The iteration with the refusal, and the one that follows it.
            let usual = self.0.get(space).map_or(0, |figures| 2 * figures.left);
            let now = ledger::snapshot(*space).live;
            let excess = now.saturating_sub(before.live.saturating_add(usual));
            (excess > 0).then_some((*space, excess))
        };
        before.iter().filter_map(excess).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Space = Space::Cuda(0);

    fn measured(allocations: u64, live: u64) -> MeasuredIteration {
        let now =
            CounterSnapshot { allocations, live, iteration_peak: 30, ..CounterSnapshot::default() };
        let before = BTreeMap::from([(GPU, CounterSnapshot::default())]);
        MeasuredIteration::between(&before, &BTreeMap::from([(GPU, now), (Space::Host, now)]))
    }

    #[test]
    fn the_first_figure_that_differs_is_named() {
        let reference = measured(3, 0);
        assert!(reference.is_alike(&measured(3, 0)));
        assert_eq!(reference.difference(&measured(3, 0)), None);
        assert_eq!(reference.difference(&measured(4, 0)), Some((GPU, "allocations", 3, 4)));
        assert_eq!(reference.difference(&measured(3, 8)), Some((GPU, "growth", 0, 8)));
        assert!(!reference.is_alike(&measured(4, 0)));
    }
}
