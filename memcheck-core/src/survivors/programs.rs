//! Programs to judge: what they keep alive, iteration by iteration, and the
//! groups that a census would make of it.

use super::Group;

/// Iterations before the measured ones, as by default.
const WARMUP: usize = 2;

/// A tiny generator (splitmix64): the tests are the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From `low` to `high`, both included.
    pub(crate) fn within(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }

    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.within(1, 100) <= percent
    }

    pub(crate) fn size(&mut self) -> u64 {
        4 * self.within(1, 1 << 20) as u64
    }
}

/// One block: live at the end of the iterations from `born` to before `died`.
#[derive(Debug, Clone, Copy)]
struct Block {
    born: usize,
    died: usize,
    bytes: u64,
}

/// A program that ran its warm-up and `measured` iterations.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    measured: usize,
    blocks: Vec<Block>,
}

impl Program {
    pub(crate) fn new(measured: usize) -> Self {
        Self { measured, blocks: Vec::new() }
    }

    /// Iterations, warm-up counted in.
    pub(crate) fn iterations(&self) -> usize {
        WARMUP + self.measured
    }

    pub(crate) fn block(&mut self, born: usize, died: usize, bytes: u64) {
        self.blocks.push(Block { born, died, bytes });
    }

    /// `count` blocks in every `period`-th iteration are never freed.
    pub(crate) fn leaks(&mut self, period: usize, phase: usize, count: usize, bytes: u64) {
        for at in (phase..self.iterations()).step_by(period) {
            (0..count).for_each(|_| self.block(at, usize::MAX, bytes));
        }
    }

    /// The last `length` values that `bytes` makes are kept: a ring, and a
    /// double buffer where that is 1 or 2.
    pub(crate) fn ring(&mut self, length: usize, mut bytes: impl FnMut() -> u64) {
        (0..self.iterations()).for_each(|at| self.block(at, at + length, bytes()));
    }

    /// Up to `most` blocks that outlive their iteration, and not the next.
    pub(crate) fn temporaries(&mut self, random: &mut Random, most: usize, bytes: u64) {
        for at in 0..self.iterations() {
            (0..random.within(0, most)).for_each(|_| self.block(at, at + 1, bytes));
        }
    }

    /// A buffer that is `bytes` large at the end of each iteration, and made
    /// anew where that changes.
    pub(crate) fn buffer(&mut self, bytes: &[u64]) {
        let mut born = 0;
        for at in 1..=bytes.len() {
            if at == bytes.len() || bytes[at] != bytes[born] {
                let died = if at == bytes.len() { usize::MAX } else { at };
                self.block(born, died, bytes[born]);
                born = at;
            }
        }
    }

    /// Both programs in one.
    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.blocks.extend(&other.blocks);
        self
    }

    /// All blocks as those of one call site.
    pub(crate) fn site(&self) -> Group {
        let first = self.blocks.first().map(|block| block.bytes);
        let alike = self.blocks.iter().all(|block| Some(block.bytes) == first);
        self.group(first.filter(|_| alike), |_| true)
    }

    /// A group for each size that has survivors.
    pub(crate) fn sizes(&self) -> Vec<Group> {
        let mut sizes: Vec<u64> = self.blocks.iter().map(|block| block.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let groups = sizes.into_iter().map(|size| self.group(Some(size), |bytes| bytes == size));
        groups.filter(|group| group.count() > 0).collect()
    }

    fn group(&self, block: Option<u64>, is_in: impl Fn(u64) -> bool) -> Group {
        let series = |which: &dyn Fn(&Block, usize) -> bool| -> (Vec<u64>, Vec<u64>) {
            (WARMUP..self.iterations())
                .map(|now| {
                    let bytes = self
                        .blocks
                        .iter()
                        .filter(|block| is_in(block.bytes) && which(block, now))
                        .map(|block| block.bytes);
                    bytes.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes))
                })
                .unzip()
        };
        let live_at = |block: &Block, now: usize| block.born <= now && now < block.died;
        let end = self.iterations() - 1;
        let (births, bytes) = series(&|block, now| block.born == now && live_at(block, end));
        let (live, live_bytes) = series(&live_at);
        let (old, old_bytes) = series(&|block, now| live_at(block, now) && block.born + 2 <= now);
        Group { block, births, bytes, live, live_bytes, old, old_bytes }
    }
}
