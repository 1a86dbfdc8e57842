//! The confusion matrix: how often the programs of a family are called a leak, clean or open.

use super::{Program, ProgramFamily, Random};
use crate::growth::lifetimes::{Budget, Certainty, Decision, Open};

/// The verdicts on the programs of one family.
#[derive(Debug, Default, Clone)]
pub struct MatrixRow {
    /// Called a leak.
    pub leak: u32,
    /// Called a leak of at least its rate.
    pub at_least: u32,
    /// Called clean.
    pub clean: u32,
    /// Left open: growth goes on.
    pub goes_on: u32,
    /// Left open: growth slows.
    pub slows: u32,
    /// Left open: the level moves.
    pub moves: u32,
    /// Called exact, with a rate that differs from the true one, or at least an exact rate above it.
    pub wrong: u32,
    /// The program has an exact rate, but the leak that was found does not.
    pub inexact: u32,
    /// The most looks at one program.
    pub looks: u32,
    /// The iterations that each program needed.
    pub iterations: Vec<u32>,
}

impl MatrixRow {
    /// Runs a program and adds its verdict.
    pub fn add(&mut self, program: &Program, budget: &Budget) -> Decision {
        let (decision, iterations, looks) = program.run(budget);
        self.iterations.push(iterations);
        self.looks = self.looks.max(looks);
        match &decision {
            Decision::Clean { .. } => self.clean += 1,
            Decision::Leak(leak) => {
                self.leak += 1;
                self.at_least += u32::from(!leak.whole);
                let has_rate = leak.rate.certainty == Certainty::Exact;
                let is_true = program.truth.is_none_or(|truth| {
                    if leak.whole { truth == leak.rate } else { truth >= leak.rate }
                });
                self.wrong += u32::from(has_rate && !is_true);
                self.inexact += u32::from(!(leak.whole && has_rate) && program.truth.is_some());
            }
            Decision::Open(undecided) => match undecided.open {
                Open::GoesOn => self.goes_on += 1,
                Open::Slows | Open::Rare => self.slows += 1,
                Open::Moves => self.moves += 1,
            },
            Decision::More(_) => unreachable!("a program runs until it is decided"),
        }
        decision
    }

    /// Adds the verdicts on other programs.
    pub fn merge(&mut self, other: Self) {
        for (sum, part) in [
            (&mut self.leak, other.leak),
            (&mut self.at_least, other.at_least),
            (&mut self.clean, other.clean),
            (&mut self.goes_on, other.goes_on),
            (&mut self.slows, other.slows),
            (&mut self.moves, other.moves),
            (&mut self.wrong, other.wrong),
            (&mut self.inexact, other.inexact),
        ] {
            *sum += part;
        }
        self.looks = self.looks.max(other.looks);
        self.iterations.extend(other.iterations);
    }

    /// `part` programs as a share of all programs, in percent.
    pub fn percent(&self, part: u32) -> f64 {
        100.0 * f64::from(part) / self.iterations.len().max(1) as f64
    }

    /// Cells in the order of [`HEADER`]: percent, then iterations (mean, 95th percentile, most).
    pub fn cells(&mut self) -> [String; 9] {
        self.iterations.sort_unstable();
        let count = self.iterations.len();
        let share = |part: u32| match part {
            0 => "-".to_owned(),
            part => format!("{:.2}", self.percent(part)),
        };
        let mean = self.iterations.iter().map(|&i| f64::from(i)).sum::<f64>() / count.max(1) as f64;
        let at = |place: usize| self.iterations.get(place).copied().unwrap_or(0);
        let needed =
            format!("{mean:.0} / {} / {}", at(count * 95 / 100), at(count.saturating_sub(1)));
        let Self { leak, at_least, clean, goes_on, slows, moves, wrong, inexact, .. } = *self;
        let [a, b, c, d, e, f, g, h] =
            [leak, at_least, clean, goes_on, slows, moves, wrong, inexact].map(share);
        [a, b, c, d, e, f, g, h, needed]
    }
}

/// The column names of [`MatrixRow::cells`].
pub const HEADER: [&str; 9] =
    ["leak", "at least", "clean", "goes on", "slows", "moves", "wrong", "inexact", "iterations"];

/// Judges `programs` random programs of a family.
pub fn measure(family: &ProgramFamily, programs: u32, seed: u64, budget: &Budget) -> MatrixRow {
    let mut random = Random(seed);
    let mut row = MatrixRow::default();
    for _ in 0..programs {
        row.add(&alone(family, &mut random, budget.most), budget);
    }
    row
}

/// A random program of one family, at call site 0.
pub fn alone(family: &ProgramFamily, random: &mut Random, length: u32) -> Program {
    let size = random.size();
    family.program(random, length, 0, size)
}
