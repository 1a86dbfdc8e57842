//! Random clean programs: each keeps memory, but none grows.
//!
//! A program is two to five of [`PATTERNS`], drawn with their sizes from a seed. Sizes come from a
//! pool of one to three, so that several patterns have blocks of the same size. That is hard for a
//! judge that distinguishes patterns by block size.
//!
//! The measured iterations must suffice to *decide* a program. Let `half` be half of them. A block
//! that is live at the end was either allocated before the middle, by a pattern that then stopped,
//! or in the last `half - 1` iterations, by a pattern that replaces or empties its blocks. A ring
//! longer than `half` cannot be distinguished from a leak, so no program has one.
//!
//! [`planted_program`] is the same program with one leak in it, whose size is that of other blocks
//! of the program.

mod patterns;

use candle_core::Device;
use memcheck_runtime::Trial;

use super::HISTORY;
use patterns::{Make, PATTERNS, Step};

/// A clean program. It should run with the 10 to 30 measured iterations of [`iterations`].
///
/// # Errors
/// When the device is full.
pub fn clean_program(seed: u64, trial: &mut Trial) -> anyhow::Result<()> {
    let mut steps = steps(seed, trial);
    trial.iterate(|i| {
        for step in &mut steps {
            step(i)?;
        }
        Ok(())
    })
}

/// The same program with the leak of [`planted`].
///
/// # Errors
/// When the device is full.
pub fn planted_program(seed: u64, trial: &mut Trial) -> anyhow::Result<()> {
    let (leak, device) = (planted(seed), trial.device().clone());
    let mut steps = steps(seed, trial);
    let mut kept = Vec::with_capacity(HISTORY);
    trial.iterate(|i| {
        for step in &mut steps {
            step(i)?;
        }
        if i % leak.every == 0 {
            kept.push(zeros!(leak.floats, &device)?);
        }
        Ok(())
    })
}

/// A leak: one block every few iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leak {
    /// Floats in its block, at least 256, so that the host counts it too.
    pub floats: usize,
    /// Iterations from one block to the next: 1, 2 or 4.
    pub every: usize,
}

impl Leak {
    /// Bytes per iteration, `floats 4 / every`.
    pub const fn bytes(self) -> u64 {
        (self.floats * 4 / self.every) as u64
    }
}

/// The leak in [`planted_program`].
pub fn planted(seed: u64) -> Leak {
    let (_, sizes, mut random) = draw(seed);
    Leak { floats: random.pick(&sizes).max(256), every: random.pick(&[1, 2, 4]) }
}

/// The number of measured iterations for the program of `seed`.
pub fn iterations(seed: u64) -> usize {
    Random(!seed).between(10, 30)
}

/// The patterns of a program, by name.
pub fn describe(seed: u64) -> Vec<&'static str> {
    draw(seed).0.into_iter().map(|(name, _)| name).collect()
}

/// The names of all patterns.
pub fn pattern_names() -> impl Iterator<Item = &'static str> {
    PATTERNS.iter().map(|(name, _)| *name)
}

/// The patterns, the pool of sizes, and the generator for all further draws.
fn draw(seed: u64) -> (Vec<(&'static str, Make)>, Vec<usize>, Random) {
    let mut random = Random(seed);
    let patterns = (0..random.between(2, 5)).map(|_| random.pick(PATTERNS)).collect();
    let sizes = (0..random.between(1, 3)).map(|_| random.pick(&SIZES)).collect();
    (patterns, sizes, random)
}

fn steps(seed: u64, trial: &Trial) -> Vec<Step> {
    let (patterns, sizes, random) = draw(seed);
    let half = trial.iterations() / 2;
    let (middle, device) = (trial.warmup() + half, trial.device().clone());
    let mut plan = Plan { random, sizes, middle, half, device };
    patterns.into_iter().map(|(_, make)| make(&mut plan)).collect()
}

/// Floats in a block: of less than 1 KiB, of 1 KiB, and of more.
const SIZES: [usize; 6] = [16, 256, 257, 512, 1024, 4096];

/// The parameters from which the patterns of one program are created.
struct Plan {
    random: Random,
    /// The pool of sizes, in floats. Each pattern draws from it.
    sizes: Vec<usize>,
    /// The middle of the measured iterations. The index includes the warm-up.
    middle: usize,
    /// Half of the measured iterations.
    half: usize,
    device: Device,
}

impl Plan {
    fn size(&mut self) -> usize {
        self.random.pick(&self.sizes)
    }

    /// A number of iterations for which a pattern may keep a block.
    fn span(&mut self) -> usize {
        self.random.between(1, self.half - 1)
    }

    /// An iteration before the middle.
    fn early(&mut self) -> usize {
        self.random.between(0, self.middle - 1)
    }
}

/// SplitMix64, because it is small and the same on every machine. The number is the state, which is
/// the seed at first.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `least..=most`.
    fn between(&mut self, least: usize, most: usize) -> usize {
        least + (self.next_u64() % (most - least + 1) as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.between(0, from.len() - 1)]
    }
}
