//! Alternating rounds, and the ratios that come from them.

use std::time::Duration;

use memcheck_tests::overhead::Workload;

use crate::programs::{Allocator, Program, Programs};

/// Rounds for each workload, and after how many the programs start anew.
const ROUNDS: usize = 150;
const GENERATION: usize = 25;
/// About how long a program runs in a round: not much more than what the
/// kernel lets it run undisturbed on a busy machine.
const TURN: Duration = Duration::from_millis(6);

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
    /// One for each seat, bare first.
    pub(crate) rows: Vec<Row>,
}

/// The times of one program at one workload.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) allocator: Allocator,
    /// Median time of an iteration, in nanoseconds.
    pub(crate) nanoseconds: f64,
    /// Ratio to bare of the fastest rounds, a mean over the generations.
    pub(crate) fastest: f64,
    /// Median over the rounds of the ratio to bare in the same round.
    pub(crate) median: f64,
}

/// Runs all rounds of all workloads.
pub(crate) fn measure(programs: &Programs) -> anyhow::Result<Vec<Measured>> {
    Workload::ALL
        .into_iter()
        .map(|workload| {
            eprintln!("{ROUNDS} alternating rounds of {}", workload.name());
            let times = alternate(programs, workload)?;
            Ok(Measured { workload, rows: rows(&times) })
        })
        .collect()
}

/// Nanoseconds of an iteration, by seat and round.
fn alternate(programs: &Programs, workload: Workload) -> anyhow::Result<Vec<Vec<f64>>> {
    let mut times = vec![Vec::with_capacity(ROUNDS); SEATS.len()];
    let mut seated: Vec<(Program, u64)> = Vec::new();
    for round in 0..ROUNDS {
        if round % GENERATION == 0 {
            seated.clear();
            for seat in SEATS {
                let layout = seat.layout + round / GENERATION;
                let mut program = programs.start(seat.allocator, layout)?;
                let iterations = iterations_of_a_turn(&mut program, workload)?;
                seated.push((program, iterations));
            }
        }
        for turn in 0..SEATS.len() {
            // Another one begins each time, and neighbours change sides.
            let turn = if round % 2 == 0 { turn } else { SEATS.len() - 1 - turn };
            let seat = (round + turn) % SEATS.len();
            let (program, iterations) = &mut seated[seat];
            let elapsed = program.time(workload, *iterations)?;
            times[seat].push(elapsed.as_nanos() as f64 / *iterations as f64);
        }
    }
    Ok(times)
}

fn iterations_of_a_turn(program: &mut Program, workload: Workload) -> anyhow::Result<u64> {
    let mut iterations = 1;
    loop {
        // The fastest of some: an interrupted one would make every turn too short.
        let mut elapsed = Duration::MAX;
        for _ in 0..5 {
            elapsed = elapsed.min(program.time(workload, iterations)?);
        }
        if elapsed * 8 > TURN {
            let turns = TURN.as_secs_f64() / elapsed.as_secs_f64();
            return Ok((iterations as f64 * turns).ceil() as u64);
        }
        iterations *= 4;
    }
}

fn rows(times: &[Vec<f64>]) -> Vec<Row> {
    let bare = &times[0];
    SEATS
        .iter()
        .zip(times)
        .map(|(&Seat { allocator, name, layout: _ }, times)| Row {
            name,
            allocator,
            nanoseconds: median(times.iter().copied()),
            fastest: mean(
                times
                    .chunks(GENERATION)
                    .zip(bare.chunks(GENERATION))
                    .map(|(times, bare)| least(times) / least(bare)),
            ),
            median: median(times.iter().zip(bare).map(|(time, bare)| time / bare)),
        })
        .collect()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}
