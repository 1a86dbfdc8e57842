//! The order of the programs in a round, and the workloads.

use std::time::Duration;

use memcheck_tests::overhead::Workload;

use crate::alternating::{Row, rounds};
use crate::programs::{Allocator, Programs};

/// The approximate time that a program runs in a round. On a busy machine the kernel rarely lets a
/// process run undisturbed for much longer.
const TURN: Duration = Duration::from_millis(6);
/// The programs of a round. The second bare program is a control, and its layout differs from that
/// of the first.
const SEATS: [Seat; 8] = [
    Seat { allocator: Allocator::Bare, name: "bare", layout: 0 },
    Seat { allocator: Allocator::Bare, name: "bare again", layout: 1 },
    Seat { allocator: Allocator::Memcheck, name: "memcheck", layout: 0 },
    Seat { allocator: Allocator::CHeap, name: "c_heap", layout: 0 },
    Seat { allocator: Allocator::Attributed, name: "attributed", layout: 0 },
    Seat { allocator: Allocator::StatsAlloc, name: "stats_alloc", layout: 0 },
    Seat { allocator: Allocator::PeakAlloc, name: "peak_alloc", layout: 0 },
    Seat { allocator: Allocator::Dhat, name: "dhat", layout: 0 },
];

#[derive(Debug, Clone, Copy)]
struct Seat {
    allocator: Allocator,
    name: &'static str,
    /// The layout in the first generation. Each later generation uses the next one.
    layout: usize,
}

#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) workload: Workload,
    /// One for each of [`SEATS`].
    pub(crate) rows: Vec<Row>,
}

impl Measured {
    pub(crate) fn seated(&self) -> impl Iterator<Item = (Allocator, &Row)> {
        SEATS.iter().map(|seat| seat.allocator).zip(&self.rows)
    }
}

pub(crate) fn measure(programs: &Programs) -> anyhow::Result<Vec<Measured>> {
    let names = SEATS.map(|seat| seat.name);
    Workload::ALL
        .into_iter()
        .map(|workload| {
            let rows = rounds(&names, workload.name(), TURN, |seat, generation| {
                let Seat { allocator, layout, .. } = SEATS[seat];
                programs.start(allocator, layout + generation)
            })?;
            Ok(Measured { workload, rows })
        })
        .collect()
}
