//! Who takes turns, at which workloads.

use memcheck_tests::overhead::Workload;

use crate::alternating::{Row, rounds};
use crate::programs::{Allocator, Programs};

/// What takes turns: the allocators, and once more the bare one as a control,
/// in another layout than the first.
const SEATS: [Seat; 7] = [
    Seat { allocator: Allocator::Bare, name: "bare", layout: 0 },
    Seat { allocator: Allocator::Bare, name: "bare again", layout: 1 },
    Seat { allocator: Allocator::Memcheck, name: "memcheck", layout: 0 },
    Seat { allocator: Allocator::Attributed, name: "attributed", layout: 0 },
    Seat { allocator: Allocator::StatsAlloc, name: "stats_alloc", layout: 0 },
    Seat { allocator: Allocator::PeakAlloc, name: "peak_alloc", layout: 0 },
    Seat { allocator: Allocator::Dhat, name: "dhat", layout: 0 },
];

/// A place in the round.
#[derive(Debug, Clone, Copy)]
struct Seat {
    allocator: Allocator,
    name: &'static str,
    /// The layout in the first generation; the next one has the next.
    layout: usize,
}

/// What the rounds of one workload gave.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) workload: Workload,
    /// One for each of [`SEATS`].
    pub(crate) rows: Vec<Row>,
}

impl Measured {
    /// The rows with the allocator of each.
    pub(crate) fn seated(&self) -> impl Iterator<Item = (Allocator, &Row)> {
        SEATS.iter().map(|seat| seat.allocator).zip(&self.rows)
    }
}

/// Runs all rounds of all workloads.
pub(crate) fn measure(programs: &Programs) -> anyhow::Result<Vec<Measured>> {
    let names = SEATS.map(|seat| seat.name);
    Workload::ALL
        .into_iter()
        .map(|workload| {
            let rows = rounds(&names, workload.name(), |seat, generation| {
                let Seat { allocator, layout, .. } = SEATS[seat];
                programs.start(allocator, layout + generation)
            })?;
            Ok(Measured { workload, rows })
        })
        .collect()
}
