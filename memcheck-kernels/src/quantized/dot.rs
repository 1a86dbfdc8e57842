//! Products of a quantized row and a quantized vector, in the device's order of summation.

use super::super::reduce::tree;
use super::super::{Known, Unknown};
use super::blocks::{Format, QuantBlock, half};

/// The elements and the bytes of a block of a quantized vector.
pub(super) const Q8_1: (usize, usize) = (32, 36);

/// A block of a quantized vector.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(super) d: f32,
    /// The sum of the elements before they were quantized.
    pub(super) sum: f32,
    pub(super) quants: Vec<i32>,
}

impl Input {
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let quants = bytes[4..Q8_1.1].iter().map(|&byte| i32::from(byte as i8)).collect();
        Self { d: half(bytes, 0), sum: half(bytes, 2), quants }
    }
}

/// The threads that share a block.
fn parts(format: Format) -> usize {
    match format {
        Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 => 2,
        Format::Q8_0 => 4,
        Format::Q2K | Format::Q3K | Format::Q4K | Format::Q5K => 16,
        Format::Q6K => 32,
        Format::Q8K => 0,
    }
}

/// The sum of products of quants from `first` on, and the sum of the inputs there.
fn four(block: &QuantBlock, inputs: &[Input], first: usize) -> (i32, i32) {
    let input = &inputs[first / Q8_1.0].quants[first % Q8_1.0..][..4];
    let pairs = block.quants[first..first + 4].iter().zip(input);
    (pairs.map(|(a, b)| a * b).sum(), input.iter().sum())
}

/// What one thread computes of a block.
fn part(format: Format, block: &QuantBlock, inputs: &[Input], part: usize) -> f32 {
    let all = |firsts: &[usize]| {
        firsts.iter().fold((0, 0), |(dot, sum), &first| {
            let (more, input) = four(block, inputs, first);
            (dot + more, sum + input)
        })
    };
    let (of_input, true_sum) = (inputs[0].d, inputs[0].sum);
    let halves = || all(&[8 * part, 8 * part + 4, 16 + 8 * part, 20 + 8 * part]);
    // Each element is lower by the offset than the bits that the thread multiplies. The offset is
    // subtracted with the sum of the inputs before they were quantized, not after.
    let with_offset = |offset: i32| {
        let (dot, sum) = halves();
        block.d * ((dot + offset * sum) as f32 * of_input - (offset / 2) as f32 * true_sum)
    };
    match format {
        Format::Q4_0 => with_offset(8),
        Format::Q5_0 => with_offset(16),
        Format::Q4_1 | Format::Q5_1 => {
            halves().0 as f32 * (block.d * of_input) + -block.min * true_sum / 2.0
        }
        Format::Q8_0 => all(&[8 * part, 8 * part + 4]).0 as f32 * block.d * of_input,
        Format::Q2K | Format::Q3K => {
            let first = part / 8 * 128 + part % 8 * 4;
            groups(block, inputs, (0..4).map(|at| all(&[first + 32 * at])), first, 32)
        }
        Format::Q4K | Format::Q5K => {
            let first = part / 4 * 64 + part % 4 * 4;
            let sums = (0..2).map(|at| all(&[first + 32 * at, first + 32 * at + 16]));
            groups(block, inputs, sums, first, 32)
        }
        Format::Q6K => {
            let first = part / 16 * 128 + part % 16 / 8 * 32 + part % 8 * 4;
            groups(block, inputs, (0..2).map(|at| all(&[first + 64 * at])), first, 64)
        }
        Format::Q8K => 0.0,
    }
}

/// Sums groups with their scales, and their least values with the quantized inputs.
fn groups(
    block: &QuantBlock,
    inputs: &[Input],
    sums: impl Iterator<Item = (i32, i32)>,
    first: usize,
    step: usize,
) -> f32 {
    let (mut scaled, mut least) = (0_f32, 0_f32);
    for (at, (dot, sum)) in sums.enumerate() {
        let element = first + step * at;
        let d = inputs[element / Q8_1.0].d;
        let (of_scale, of_least) = block.group(element);
        scaled += d * (dot * of_scale) as f32;
        least += d * (sum * of_least) as f32;
    }
    block.d * scaled - block.min * least
}

/// The product of a row of weights and a vector with `warps` warps of threads.
pub(super) fn product(
    format: Format,
    row: &[QuantBlock],
    vector: &[Input],
    warps: usize,
) -> Known<f32> {
    let parts = parts(format);
    let each = format.elements() / Q8_1.0;
    if parts == 0 || vector.len() < row.len() * each {
        return Err(Unknown);
    }
    let mut threads = vec![0_f32; 32 * warps];
    let at_once = threads.len() / parts;
    for (number, block) in row.iter().enumerate() {
        let inputs = &vector[number * each..][..each];
        let first = number % at_once * parts;
        for (at, thread) in threads[first..first + parts].iter_mut().enumerate() {
            *thread += part(format, block, inputs, at);
        }
    }
    let (lanes, others) = threads.split_at(32);
    let mut lanes = lanes.to_vec();
    for warp in others.chunks_exact(32) {
        lanes.iter_mut().zip(warp).for_each(|(lane, value)| *lane += value);
    }
    tree(lanes, |a, b| a + b)
}
