//! Products of a quantized matrix and many vectors, by candle's launchers of "MMQ".
//!
//! The vectors are quantized in blocks of 128 elements, in three layouts, so that the results
//! differ a little from those for few vectors. A device divides the sums among threads and streams;
//! here they are made in the order of the columns.

use half::f16;

use super::super::element::Element;
use super::super::launch::{AllKnown as _, Source, produce};
use super::super::memory::Memory;
use super::super::reduce::tree;
use super::super::work::SINGLE_PRODUCT;
use super::super::{ELEMENT, Known, Unknown};
use super::blocks::{Format, QuantBlock, half};
use super::{QuantizedProduct, blocks};

/// The elements and the bytes of a block: 16 bytes of scales and sums, then the quants.
const BLOCK: (u64, u64) = (128, 144);

/// What a block has beside its quants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scales {
    /// A scale of 32 bits for 32 elements.
    D4,
    /// A scale and the true sum, of 16 bits each, for 32 elements.
    Ds4,
    /// A scale for each 64 elements, and the true sums of the first six groups of 16.
    D2s6,
}

impl Scales {
    fn of(format: Format) -> Self {
        match format {
            Format::Q4_0 | Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => Self::Ds4,
            Format::Q2K => Self::D2s6,
            _ => Self::D4,
        }
    }
}

/// Quantizes `rows` of `columns` elements, which are `stride` apart, with zeros up to `padded`.
pub fn quantize(
    memory: &mut dyn Memory,
    scales: Scales,
    from: u64,
    to: u64,
    [columns, stride, padded, rows]: [u64; 4],
) {
    let elements = rows.saturating_mul(padded);
    let length = (elements / BLOCK.0).saturating_mul(BLOCK.1);
    produce::<u8>(memory, to, length, elements.saturating_mul(ELEMENT), |source| {
        if !padded.is_multiple_of(BLOCK.0) || !columns.is_multiple_of(4) || columns > padded {
            return Err(Unknown);
        }
        let mut result = Vec::with_capacity(length as usize);
        let all = (0..rows)
            .map(|row| {
                let address = from.saturating_add(row.saturating_mul(stride).saturating_mul(4));
                let mut row: Vec<f32> = source.elements(address, columns)?;
                row.resize(padded as usize, 0.0);
                Ok(row)
            })
            .all_known()?;
        for first in (0..padded as usize).step_by(BLOCK.0 as usize) {
            for row in &all {
                block(scales, &row[first..first + BLOCK.0 as usize], &mut result)?;
            }
        }
        Ok(result)
    });
}

fn block(scales: Scales, elements: &[f32], to: &mut Vec<u8>) -> Known {
    let of_scale = if scales == Scales::D2s6 { 64 } else { 32 };
    let inverse = |group: &[f32]| 127.0 / group.iter().fold(0_f32, |a, x| a.max(x.abs()));
    let groups = || elements.chunks_exact(of_scale).map(|group| (group, inverse(group)));
    // A thread sums four elements.
    let sum = |group: &[f32]| {
        tree(group.chunks_exact(4).map(|it| it[0] + it[1] + it[2] + it[3]).collect(), |a, b| a + b)
    };
    for (group, inverse) in groups() {
        let d = 1.0 / inverse;
        match scales {
            Scales::D4 => d.store(to),
            Scales::D2s6 => f16::from_f32(d).store(to),
            Scales::Ds4 => {
                f16::from_f32(d).store(to);
                f16::from_f32(sum(group)?).store(to);
            }
        }
    }
    if scales == Scales::D2s6 {
        for group in elements[..96].chunks_exact(16) {
            f16::from_f32(sum(group)?).store(to);
        }
    }
    for (group, inverse) in groups() {
        // Zero times infinity is NaN, which becomes 0.
        to.extend(group.iter().map(|x| (x * inverse).round() as i8 as u8));
    }
    Ok(())
}

impl QuantizedProduct {
    /// Computes the product with vectors in blocks of 128 elements, of which those for the same
    /// columns are together.
    pub fn run_tiled(self, memory: &mut dyn Memory) {
        let dims = [self.rows, self.columns, self.batch];
        let product = |work: u64, dim: u64| work.saturating_mul(dim.max(1));
        let work = dims.into_iter().fold(SINGLE_PRODUCT, product);
        let result = match memory.values().permits(work) {
            true => self.compute_tiled(&Source::new(memory)),
            false => Err(Unknown),
        };
        if result.is_ok() {
            memory.values_mut().count_operations(work);
        }
        for number in 0..self.batch {
            let offset = number.saturating_mul(self.stride).saturating_mul(4);
            let row = result.as_ref().map(|all| all[number as usize].clone()).map_err(|_| Unknown);
            produce::<f32>(memory, self.to.saturating_add(offset), self.rows, 0, |_| row);
        }
    }

    fn compute_tiled(self, source: &Source<'_>) -> Known<Vec<Vec<f32>>> {
        let scales = Scales::of(self.format);
        let length = self.columns.div_ceil(BLOCK.0).saturating_mul(self.batch);
        let bytes: Vec<u8> = source.elements(self.vectors, length.saturating_mul(BLOCK.1))?;
        let inputs: Vec<&[u8]> = bytes.chunks_exact(BLOCK.1 as usize).collect();
        let mut results = vec![Vec::new(); self.batch as usize];
        let each = self.columns / self.format.elements() as u64;
        for row in 0..self.rows {
            let offset = row.saturating_mul(each * self.format.bytes() as u64);
            let row = blocks(source, self.format, self.weights.saturating_add(offset), each)?;
            for (number, result) in results.iter_mut().enumerate() {
                let mut sum = 0_f32;
                for (at, block) in row.iter().enumerate() {
                    for first in (0..block.quants.len()).step_by(32) {
                        let column = at * block.quants.len() + first;
                        let input = inputs[column / 128 * self.batch as usize + number];
                        add(self.format, scales, block, first, input, column % 128, &mut sum);
                    }
                }
                result.push(sum);
            }
        }
        Ok(results)
    }
}

/// Adds the products of 32 elements of a block, from `first` on, with those of an input.
fn add(
    format: Format,
    scales: Scales,
    block: &QuantBlock,
    first: usize,
    input: &[u8],
    at: usize,
    sum: &mut f32,
) {
    let quant = |at: usize| i32::from(input[16 + at] as i8);
    let dot = |from: usize, count: usize| -> f32 {
        (from..from + count).map(|it| block.quants[first + it] * quant(at + it)).sum::<i32>() as f32
    };
    let rounded = |value: f32| f16::from_f32(value).to_f32();
    let part = at / 32;
    let (d, true_sum) = match scales {
        Scales::D4 => (f32::from_ne_bytes(std::array::from_fn(|it| input[4 * part + it])), 0.0),
        Scales::Ds4 => (half(input, 4 * part), half(input, 4 * part + 2)),
        Scales::D2s6 => (half(input, 2 * (at / 64)), 0.0),
    };
    match format {
        Format::Q4_0 | Format::Q5_0 | Format::Q8_0 => *sum += dot(0, 32) * block.d * d,
        Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => {
            // The product with the scale of a group is stored in f16.
            let (scale, least) = block.group(first);
            *sum += rounded(block.d * scale as f32) * d * dot(0, 32);
            *sum -= rounded(block.min * least as f32) * true_sum;
        }
        Format::Q2K => {
            for from in [0, 16] {
                let (scale, least) = block.group(first + from);
                let (scale, least) =
                    (rounded(block.d * scale as f32), rounded(block.min * least as f32));
                let group = (at + from) / 16;
                let mut product = dot(from, 16) * scale;
                if group < 6 {
                    *sum += product * d;
                    *sum -= least * half(input, 4 + 2 * group);
                } else {
                    // The last two groups have no true sum.
                    let inputs: i32 = (from..from + 16).map(|it| quant(at + it)).sum();
                    product -= inputs as f32 * least;
                    *sum += product * d;
                }
            }
        }
        Format::Q3K | Format::Q6K | Format::Q8K => {
            let group =
                |from: usize| dot(from, 16) * (block.d * block.group(first + from).0 as f32);
            *sum += (group(0) + group(16)) * d;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::TestDevice;

    fn quantized(device: &mut TestDevice, scales: Scales, rows: &[Vec<f32>]) -> u64 {
        let columns = rows[0].len() as u64;
        let padded = columns.next_multiple_of(512);
        let from = device.upload(&rows.concat());
        let to = device.allocate(rows.len() * padded as usize / 128 * 144);
        let sizes = [columns, columns, padded, rows.len() as u64];
        quantize(&mut device.memory, scales, from, to, sizes);
        to
    }

    #[test]
    fn a_vector_is_quantized_in_three_layouts() {
        let mut device = TestDevice::new();
        let mut row = vec![0_f32; 128];
        (row[0], row[1], row[95]) = (127.0, -2.5, 254.0);
        let h = |value: f32| f16::from_f32(value).to_ne_bytes();
        let to = quantized(&mut device, Scales::D4, &[row.clone(), vec![0.0; 128]]);
        let block: Vec<u8> = device.download(to, 4 * 2 * 144).unwrap();
        let scales: Vec<u8> = [1_f32, 0.0, 2.0, 0.0].iter().flat_map(|d| d.to_ne_bytes()).collect();
        assert_eq!(block[..16], scales);
        assert_eq!((block[16], block[17] as i8, block[16 + 95], block[18]), (127, -3, 127, 0));
        // The second vector follows, then the next columns of both.
        assert_eq!(block[144..], vec![0; 7 * 144]);
        let to = quantized(&mut device, Scales::Ds4, std::slice::from_ref(&row));
        let block: Vec<u8> = device.download(to, 16).unwrap();
        let zeros = [0; 4];
        assert_eq!(block, [&h(1.0)[..], &h(124.5), &zeros, &h(2.0), &h(254.0), &zeros].concat());
        let to = quantized(&mut device, Scales::D2s6, &[row]);
        let block: Vec<u8> = device.download(to, 16).unwrap();
        assert_eq!(block, [&h(1.0)[..], &h(2.0), &h(124.5), &[0; 8], &h(254.0)].concat());
    }

    #[test]
    fn a_product_of_every_format_is_near_that_of_its_values() {
        let formats = [
            (Format::Q4_0, 0..2),
            (Format::Q4_1, 0..4),
            (Format::Q5_0, 0..2),
            (Format::Q5_1, 0..4),
            (Format::Q8_0, 0..2),
            (Format::Q2K, 80..84),
            (Format::Q3K, 108..110),
            (Format::Q4K, 0..4),
            (Format::Q5K, 0..4),
            (Format::Q6K, 208..210),
        ];
        for (format, places) in formats {
            let mut device = TestDevice::new();
            let mut state = 7_u32;
            let mut bytes: Vec<u8> = (0..2 * 512 / format.elements() * format.bytes())
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect();
            for block in bytes.chunks_exact_mut(format.bytes()) {
                for scale in block[places.clone()].chunks_exact_mut(2) {
                    scale.copy_from_slice(&f16::from_f32(0.25).to_le_bytes());
                }
            }
            let vectors: [Vec<f32>; 3] = std::array::from_fn(|number| {
                (0..512).map(|at| ((at * 37 + number * 11) % 101) as f32 - 50.0).collect()
            });
            let decoded = bytes.chunks_exact(format.bytes()).map(|block| format.decode(block));
            let values: Vec<f32> = decoded.flat_map(|it| it.values().collect::<Vec<_>>()).collect();
            let vectors_at = quantized(&mut device, Scales::of(format), &vectors);
            let (weights, to) = (device.upload(&bytes), device.upload(&[9_f32; 9]));
            let product = QuantizedProduct {
                format,
                weights,
                vectors: vectors_at,
                to,
                columns: 512,
                rows: 2,
                vector_stride: 0,
                stride: 3,
                batch: 3,
            };
            product.run_tiled(&mut device.memory);
            let result: Vec<f32> = device.download(to, 9).unwrap();
            for (number, vector) in vectors.iter().enumerate() {
                for row in 0..2 {
                    let terms =
                        || values[512 * row..].iter().zip(vector).map(|(a, b)| f64::from(a * b));
                    let (expected, size): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
                    let result = f64::from(result[3 * number + row]);
                    assert!(
                        (result - expected).abs() < size / 200.0,
                        "{format:?}: {result}, {expected}"
                    );
                }
                assert_eq!(result[3 * number + 2], 9.0);
            }
        }
    }

    #[test]
    fn an_unknown_vector_has_unknown_products() {
        let mut device = TestDevice::new();
        let (weights, vectors) = (device.upload(&[0_u8; 34 * 4]), device.allocate(144));
        let to = device.upload(&[9_f32; 2]);
        let product = QuantizedProduct {
            format: Format::Q8_0,
            weights,
            vectors,
            to,
            columns: 128,
            rows: 1,
            vector_stride: 0,
            stride: 1,
            batch: 1,
        };
        product.run_tiled(&mut device.memory);
        assert_eq!(device.download::<f32>(to, 1), None);
        assert_eq!(device.download(to + 4, 1), Some(vec![9_f32]));
    }
}
