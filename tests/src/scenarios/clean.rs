//! Clean programs made at random: each keeps things, and none grows.
//!
//! A program is two to five of [`PATTERNS`], drawn with their sizes from a
//! seed. Sizes come from a pool of one to three, so patterns meet in the size
//! of their blocks, which is hard on whoever tells them apart by it.
//!
//! What a program does can be *decided* within the measured iterations: with
//! `half` as half of them, whatever is still live at the end was either born
//! before the middle, by something that then stopped, or in the last
//! `half - 1` iterations, by something that replaces or empties what it holds.
//! A ring that is longer than `half` cannot be told from a leak, and is not made.
//!
//! [`planted_program`] is the same program with one leak in it, of the size of
//! blocks that come and go around it.

mod patterns;

use candle_core::Device;
use memcheck_runtime::Trial;

use super::HISTORY;
use patterns::{Make, PATTERNS, Step};

/// A program: measured iterations 10 to 30, see [`iterations`].
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

/// The same program, and [`planted`] in it.
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

/// A leak: a block every so many iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leak {
    /// Floats in its block, at least 256: the host counts it too.
    pub floats: usize,
    /// Iterations from one to the next: 1, 2 or 4.
    pub every: usize,
}

impl Leak {
    /// Bytes an iteration, `floats 4 / every`.
    pub const fn bytes(self) -> u64 {
        (self.floats * 4 / self.every) as u64
    }
}

/// The leak in [`planted_program`].
pub fn planted(seed: u64) -> Leak {
    let (_, sizes, mut random) = draw(seed);
    Leak { floats: random.pick(&sizes).max(256), every: random.pick(&[1, 2, 4]) }
}

/// Measured iterations that the program of `seed` is meant to have.
pub fn iterations(seed: u64) -> usize {
    Random(!seed).between(10, 30)
}

/// The patterns of a program, by name.
pub fn describe(seed: u64) -> Vec<&'static str> {
    draw(seed).0.into_iter().map(|(name, _)| name).collect()
}

/// The patterns, the pool of sizes, and what else there is to draw.
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

/// What the patterns of one program are made from.
struct Plan {
    random: Random,
    /// Floats in a block, one of which each pattern takes.
    sizes: Vec<usize>,
    /// The iteration that is the middle of the measured ones, warm-up counted in.
    middle: usize,
    /// Half of the measured iterations.
    half: usize,
    device: Device,
}

impl Plan {
    fn size(&mut self) -> usize {
        self.random.pick(&self.sizes)
    }

    /// How many iterations something may be kept for, at most.
    fn span(&mut self) -> usize {
        self.random.between(1, self.half - 1)
    }

    /// An iteration before the middle.
    fn early(&mut self) -> usize {
        self.random.between(0, self.middle - 1)
    }
}

/// SplitMix64: small, and the same on every machine.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `least..=most`.
    fn between(&mut self, least: usize, most: usize) -> usize {
        least + (self.next() % (most - least + 1) as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.between(0, from.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_one_program() {
        let patterns = "queue, list that is truncated, double buffer, varying shapes, \
                        cache that fills";
        assert_eq!(describe(7).join(", "), patterns);
        assert_eq!(planted(7), Leak { floats: 4096, every: 2 });
        assert_eq!(iterations(7), 12);
        assert_eq!(iterations(0), 24, "as the memory test `clean_program` says");
    }

    #[test]
    fn two_hundred_seeds_draw_every_pattern_and_every_length() {
        let mut names: Vec<_> = (0..200).flat_map(describe).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PATTERNS.len());
        let lengths: std::collections::BTreeSet<_> = (0..200).map(iterations).collect();
        assert_eq!((lengths.first(), lengths.last(), lengths.len()), (Some(&10), Some(&30), 21));
    }

    #[test]
    fn a_leak_is_large_enough_for_the_host_and_has_a_whole_rate() {
        for leak in (0..200).map(planted) {
            assert!(leak.floats >= 256 && leak.floats * 4 % leak.every == 0, "{leak:?}");
        }
        assert_eq!(Leak { floats: 257, every: 4 }.bytes(), 257);
    }

    #[test]
    fn the_generator_is_splitmix() {
        let mut random = Random(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }
}
