//! Alternating rounds, and the ratios that they yield.

use std::time::Duration;

use super::Program;

/// Rounds for each workload, and the number of rounds after which the programs are restarted.
const ROUNDS: usize = 150;
const GENERATION: usize = 25;

/// The times of one program at one workload.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Median time of an iteration, in nanoseconds.
    pub(crate) nanoseconds: f64,
    /// The fastest round of this program divided by that of the first program, averaged over the
    /// generations.
    pub(crate) fastest: f64,
    /// The median, over the rounds, of the ratio to the first program in the same round.
    pub(crate) median: f64,
}

/// Runs all rounds of a workload. `start` receives the seat (the index of a program) and the
/// generation of the process to start. All seats are compared with the first one. `turn` is the
/// approximate time that a program runs in a round.
pub(crate) fn rounds(
    names: &[&'static str],
    workload: &str,
    turn: Duration,
    start: impl Fn(usize, usize) -> anyhow::Result<Program>,
) -> anyhow::Result<Vec<Row>> {
    eprintln!("{ROUNDS} alternating rounds of {workload}");
    let times = alternate(names.len(), workload, turn, start)?;
    Ok(rows(names, &times))
}

/// Nanoseconds of an iteration, by seat and round.
fn alternate(
    seats: usize,
    workload: &str,
    turn: Duration,
    start: impl Fn(usize, usize) -> anyhow::Result<Program>,
) -> anyhow::Result<Vec<Vec<f64>>> {
    let mut times = vec![Vec::with_capacity(ROUNDS); seats];
    let mut seated: Vec<(Program, u64)> = Vec::new();
    for round in 0..ROUNDS {
        if round % GENERATION == 0 {
            seated.clear();
            for seat in 0..seats {
                let mut program = start(seat, round / GENERATION)?;
                let iterations = iterations_of_a_turn(&mut program, workload, turn)?;
                seated.push((program, iterations));
            }
        }
        for place in 0..seats {
            // Each round begins with another seat, and every second round goes in the opposite
            // direction, so that no program always runs after the same one.
            let place = if round % 2 == 0 { place } else { seats - 1 - place };
            let seat = (round + place) % seats;
            let (program, iterations) = &mut seated[seat];
            let elapsed = program.time(workload, *iterations)?;
            times[seat].push(elapsed.as_nanos() as f64 / *iterations as f64);
        }
    }
    Ok(times)
}

fn iterations_of_a_turn(
    program: &mut Program,
    workload: &str,
    turn: Duration,
) -> anyhow::Result<u64> {
    let mut iterations = 1;
    loop {
        // The fastest of five measurements, because an interrupted one would make every turn too
        // short.
        let mut elapsed = Duration::MAX;
        for _ in 0..5 {
            elapsed = elapsed.min(program.time(workload, iterations)?);
        }
        if elapsed * 8 > turn {
            let turns = turn.as_secs_f64() / elapsed.as_secs_f64();
            return Ok((iterations as f64 * turns).ceil() as u64);
        }
        iterations *= 4;
    }
}

fn rows(names: &[&'static str], times: &[Vec<f64>]) -> Vec<Row> {
    let first = &times[0];
    names
        .iter()
        .zip(times)
        .map(|(&name, times)| Row {
            name,
            nanoseconds: median(times.iter().copied()),
            fastest: mean(
                times
                    .chunks(GENERATION)
                    .zip(first.chunks(GENERATION))
                    .map(|(times, first)| least(times) / least(first)),
            ),
            median: median(times.iter().zip(first).map(|(time, first)| time / first)),
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
