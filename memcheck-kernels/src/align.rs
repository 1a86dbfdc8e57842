//! The tokens of experts in blocks of equal size, by candle's launcher `candle_launch_moe_align`.

use super::launch::{Source, produce};
use super::memory::Memory;
use super::{ELEMENT, Known, Unknown};

/// The arguments of the launcher: addresses of `i32`, and sizes.
#[derive(Debug, Clone, Copy)]
pub struct Alignment {
    /// The expert of each token.
    pub experts_of_tokens: u64,
    /// The tokens by expert. Each expert has whole blocks, which are filled with the number of
    /// tokens.
    pub sorted: u64,
    /// The expert of each block, and -1 for a block without tokens.
    pub experts: u64,
    /// The number of sorted tokens, those that fill blocks included.
    pub padded: u64,
    /// The end of each expert's tokens, then that of all blocks.
    pub ends: u64,
    /// The number of experts.
    pub count: u64,
    /// The number of tokens in a block.
    pub block: u64,
    /// The number of tokens.
    pub tokens: u64,
    /// The length of `sorted`.
    pub most: u64,
}

impl Alignment {
    /// Computes the four outputs, or makes them unknown.
    pub fn run(self, memory: &mut dyn Memory) {
        let blocks = self.most.div_ceil(self.block.max(1));
        let result = match memory.values().permits((self.tokens + self.most) * ELEMENT) {
            true => self.compute(&Source::new(memory), blocks as usize),
            false => Err(Unknown),
        };
        let outputs = [
            (self.sorted, self.most),
            (self.experts, blocks),
            (self.padded, 1),
            (self.ends, self.count + 1),
        ];
        for (number, (to, length)) in outputs.into_iter().enumerate() {
            let output = result.as_ref().map(|all| all[number].clone()).map_err(|_| Unknown);
            produce::<i32>(memory, to, length, length * ELEMENT, |_| output);
        }
    }

    fn compute(self, source: &Source<'_>, blocks: usize) -> Known<[Vec<i32>; 4]> {
        let all: Vec<i32> = source.elements(self.experts_of_tokens, self.tokens)?;
        let expert_of = |token: usize| usize::try_from(all[token]).ok();
        let count = self.count as usize;
        let mut sorted = vec![self.tokens as i32; self.most as usize];
        let mut experts = Vec::with_capacity(blocks);
        let mut ends = Vec::with_capacity(count + 1);
        let mut start = 0;
        for expert in 0..count {
            let tokens = (0..all.len()).filter(|&token| expert_of(token) == Some(expert));
            let mut end = start;
            for token in tokens {
                *sorted.get_mut(end).ok_or(Unknown)? = token as i32;
                end += 1;
            }
            ends.push(end as i32);
            start += (end - start).next_multiple_of(self.block.max(1) as usize);
            experts.resize(start / self.block.max(1) as usize, expert as i32);
        }
        ends.push(start as i32);
        if experts.len() > blocks {
            return Err(Unknown);
        }
        experts.resize(blocks, -1);
        Ok([sorted, experts, vec![start as i32], ends])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::TestDevice;

    #[test]
    fn each_expert_has_whole_blocks() {
        let mut device = TestDevice::new();
        let experts_of_tokens = device.upload(&[2_i32, 0, 2, 2, 9]);
        let [sorted, experts, padded, ends] = [10, 5, 1, 4].map(|count| device.allocate(4 * count));
        let alignment = Alignment {
            experts_of_tokens,
            sorted,
            experts,
            padded,
            ends,
            count: 3,
            block: 2,
            tokens: 5,
            most: 10,
        };
        alignment.run(&mut device.memory);
        // Expert 0 has token 1, expert 1 none, and expert 2 has three; the last token has none.
        assert_eq!(device.download(sorted, 10), Some(vec![1_i32, 5, 0, 2, 3, 5, 5, 5, 5, 5]));
        assert_eq!(device.download(experts, 5), Some(vec![0_i32, 2, 2, -1, -1]));
        assert_eq!(device.download(padded, 1), Some(vec![6_i32]));
        assert_eq!(device.download(ends, 4), Some(vec![1_i32, 2, 5, 6]));
        let unknown = device.allocate(20);
        Alignment { experts_of_tokens: unknown, ..alignment }.run(&mut device.memory);
        assert_eq!(device.download::<i32>(sorted, 1), None);
    }
}
