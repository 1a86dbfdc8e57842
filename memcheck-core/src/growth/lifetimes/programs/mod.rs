//! Random programs that measure the judge, and a player that runs each until the judge decides.

mod caches;
mod clean;
mod containers;
mod leaks;
pub mod matrix;

use super::{Budget, Decision, History, Living, Rate, step};

pub use caches::CACHES;
pub use clean::CLEAN;
pub use containers::containers;
pub use leaks::LEAKS;

/// Warm-up iterations of every program.
pub const WARMUP: u32 = 2;

/// The generator splitmix64, so that the programs are the same in every run.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "a generator is not an iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: u32, high: u32) -> u32 {
        low + (self.next() % (u64::from(high - low) + 1)) as u32
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// A number from 0 to 1, excluding 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from `low` to `high`, excluding `high`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Bytes of a block: 4 x 1..2^20.
    pub fn size(&mut self) -> u64 {
        4 * u64::from(self.within(1, 1 << 20))
    }
}

/// One block, live at the end of the iterations from `born` to before `died`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramBlock {
    /// The call site.
    pub site: u32,
    /// The size in bytes.
    pub size: u64,
    /// The iteration of its birth; `None` during set-up.
    pub born: Option<u32>,
    /// The iteration of its death.
    pub died: u32,
}

/// A program: the blocks that it allocates in `length` iterations, and its true growth.
#[derive(Debug, Clone)]
pub struct Program {
    /// Iterations that the program was generated for.
    pub length: u32,
    /// All blocks that it allocates.
    pub blocks: Vec<ProgramBlock>,
    /// Zero, or the sum of the exact rates of the leaks; `None` if one has no exact rate.
    pub truth: Option<Rate>,
}

/// A family of random programs.
#[derive(Debug, Clone, Copy)]
pub struct ProgramFamily {
    /// A description of the programs.
    pub name: &'static str,
    /// Makes a program and returns its exact rate, if it has one.
    make: fn(&mut Maker) -> Option<Rate>,
}

impl ProgramFamily {
    /// A random program. `size` is the block size in families with one size.
    pub fn program(&self, random: &mut Random, length: u32, site: u32, size: u64) -> Program {
        let mut maker = Maker { random: random.clone(), length, site, size, blocks: Vec::new() };
        let truth = (self.make)(&mut maker);
        *random = maker.random;
        Program { length, blocks: maker.blocks, truth }
    }
}

#[derive(Debug)]
struct Maker {
    random: Random,
    length: u32,
    site: u32,
    size: u64,
    blocks: Vec<ProgramBlock>,
}

impl Maker {
    fn block(&mut self, born: u32, died: u32, size: u64) {
        self.blocks.push(ProgramBlock { site: self.site, size, born: Some(born), died });
    }

    fn keep(&mut self, born: u32, size: u64) {
        self.block(born, u32::MAX, size);
    }

    /// `sizes[i]` are the bytes at the end of iteration i; each change of size is a new block.
    fn buffer(&mut self, sizes: &[u64]) {
        let mut born = 0;
        for at in 1..=sizes.len() {
            if at == sizes.len() || sizes[at] != sizes[born] {
                let died = if at == sizes.len() { u32::MAX } else { at as u32 };
                if sizes[born] > 0 {
                    self.block(born as u32, died, sizes[born]);
                }
                born = at;
            }
        }
    }

    fn sizes(&mut self, count: u32) -> Vec<u64> {
        (0..count).map(|_| self.random.size()).collect()
    }
}

impl Program {
    /// A program without blocks.
    pub fn new(length: u32) -> Self {
        Self { length, blocks: Vec::new(), truth: Some(Rate::ZERO) }
    }

    /// A program with the blocks of both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.blocks.extend(&other.blocks);
        self.truth = self.truth.zip(other.truth).map(|(own, other)| own.plus(&other));
        self
    }

    /// The program with `change` applied to each block.
    #[must_use]
    pub fn map(mut self, change: impl FnMut(&mut ProgramBlock)) -> Self {
        self.blocks.iter_mut().for_each(change);
        self
    }

    /// Runs until the judge decides: the decision, the number of iterations and of looks.
    pub fn run(&self, budget: &Budget) -> (Decision, u32, u32) {
        let mut player = Player::new(self);
        player.advance((WARMUP + 10).min(budget.most));
        let mut looks = 1;
        loop {
            match step(&player.history, budget) {
                Decision::More(more) => player.advance(more),
                decision => return (decision, player.history.iterations(), looks),
            }
            looks += 1;
        }
    }

    /// The history of the first `iterations` iterations.
    pub fn history(&self, iterations: u32) -> History {
        let mut player = Player::new(self);
        player.advance(iterations);
        player.history
    }
}

struct Player {
    came: Vec<Vec<Living>>,
    gone: Vec<Vec<Living>>,
    history: History,
}

impl Player {
    fn new(program: &Program) -> Self {
        let mut came = vec![Vec::new(); program.length as usize];
        let mut gone = came.clone();
        for block in &program.blocks {
            let born = block.born.unwrap_or(0);
            if block.died <= born {
                continue;
            }
            let living =
                Living { site: Some(block.site), size: block.size, born: block.born, count: 1 };
            if let Some(came) = came.get_mut(born as usize) {
                came.push(living);
            }
            if let Some(gone) = gone.get_mut(block.died as usize) {
                gone.push(living);
            }
        }
        Self { came, gone, history: History::new(WARMUP) }
    }

    fn advance(&mut self, iterations: u32) {
        for _ in 0..iterations {
            let at = self.history.iterations() as usize;
            let take = |blocks: &mut Vec<Vec<Living>>| {
                blocks.get_mut(at).map(std::mem::take).unwrap_or_default()
            };
            self.history.advance(take(&mut self.came), take(&mut self.gone));
        }
    }
}
