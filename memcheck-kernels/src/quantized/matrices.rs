//! Products of a quantized matrix and quantized vectors by the kernels `mul_mat_*`, and products of
//! "K" formats with a vector that is not quantized.
//!
//! candle launches these kernels only from its unit tests, or with `FORCE_DMMV`.

use super::super::reduce::tree;
use super::super::work::SINGLE_PRODUCT;
use super::super::{Known, Launch};
use super::blocks::{Format, QuantBlock};
use super::dot::{Input, Q8_1};
use super::{QuantizedProduct, blocks, size};

/// `void* x, void* y, f32* dst, i32 ncols_x, i32 nrows_x, i32 ncols_y, i32 nrows_y, i32 nrows_dst`
pub(crate) fn matrices(launch: &mut Launch<'_>, format: Format) -> Known {
    let [weights, vectors, to] = [0, 1, 2].map(|at| launch.long(at));
    let [columns, rows, batch, padded, stride] = [3, 4, 5, 6, 7].map(|at| size(launch.value(at)));
    let product = QuantizedProduct {
        format,
        weights,
        vectors,
        to,
        columns,
        rows: rows.min(stride),
        vector_stride: padded / Q8_1.0 as u64,
        stride,
        batch,
    };
    product
        .run_with(launch.memory, super::Kind::F32, |row, vector| Ok(in_order(format, row, vector)))
}

/// One thread sums the products of a row with all columns, in steps of 32 or 64 elements.
fn in_order(format: Format, row: &[QuantBlock], vector: &[Input]) -> f32 {
    let each = format.elements() / Q8_1.0;
    let step = if matches!(format, Format::Q4K | Format::Q5K | Format::Q6K) { 2 } else { 1 };
    let mut sum = 0_f32;
    for (block, inputs) in row.iter().zip(vector.chunks_exact(each)) {
        for (at, inputs) in inputs.chunks(step).enumerate() {
            sum += of_step(format, block, at * step * Q8_1.0, inputs);
        }
    }
    sum
}

/// The products of a block's elements from `first` on.
fn of_step(format: Format, block: &QuantBlock, first: usize, inputs: &[Input]) -> f32 {
    let dot = |input: usize, from: usize, count: usize| -> i32 {
        let first = first + input * Q8_1.0;
        (from..from + count).map(|at| block.quants[first + at] * inputs[input].quants[at]).sum()
    };
    let sum = |input: &Input| -> i32 { input.quants.iter().sum() };
    let input = &inputs[0];
    match format {
        Format::Q4_0 => {
            // The thread multiplies the bits, from which the offset is not subtracted yet.
            let dot = dot(0, 0, 32) + 8 * sum(input);
            block.d * (dot as f32 * input.d - 8.0 * input.sum)
        }
        Format::Q5_0 | Format::Q8_0 => block.d * input.d * dot(0, 0, 32) as f32,
        Format::Q4_1 | Format::Q5_1 => {
            dot(0, 0, 32) as f32 * (block.d * input.d) + -block.min * input.sum
        }
        Format::Q2K => {
            let (mut scaled, mut least) = (0, 0);
            for from in [0, 16] {
                let group = block.group(first + from);
                scaled += dot(0, from, 16) * group.0;
                least += input.quants[from..from + 16].iter().sum::<i32>() * group.1;
            }
            input.d * (block.d * scaled as f32 - block.min * least as f32)
        }
        Format::Q3K => {
            let group = |from| dot(0, from, 16) * block.group(first + from).0;
            block.d * input.d * (group(0) + group(16)) as f32
        }
        Format::Q4K | Format::Q5K => {
            let (mut scaled, mut least) = (0_f32, 0_f32);
            for (at, input) in inputs.iter().enumerate() {
                let group = block.group(first + at * Q8_1.0);
                scaled += input.d * (group.0 * dot(at, 0, 32)) as f32;
                least += input.sum * group.1 as f32;
            }
            block.d * scaled - block.min * least
        }
        Format::Q6K => {
            let mut scaled = 0_f32;
            for (at, input) in inputs.iter().enumerate() {
                let group = |from| block.group(first + at * Q8_1.0 + from).0 * dot(at, from, 16);
                scaled += input.d * (group(0) + group(16)) as f32;
            }
            block.d * scaled
        }
        // The device has no such kernel.
        Format::Q8K => f32::NAN,
    }
}

/// `void* x, f32* y, f32* dst, i32 ncols, i32 nrows`
///
/// q5_k has no argument for the rows, because each block of threads computes one row. The sums of a
/// device have another order, so that the last digits differ.
pub(crate) fn dequantized_k(launch: &mut Launch<'_>, format: Format) -> Known {
    let [weights, y, to] = [0, 1, 2].map(|at| launch.long(at));
    let columns = size(launch.value(3));
    let launched = u64::from(launch.shape.grid[0]) * u64::from(launch.shape.block[1]);
    let rows = match format {
        Format::Q5K => u64::from(launch.shape.grid[0]),
        _ => size(launch.value(4)).min(launched),
    };
    let work = rows.saturating_mul(columns).saturating_mul(SINGLE_PRODUCT);
    launch.produce::<f32>(to, rows, work, |source| {
        let y: Vec<f32> = source.elements(y, columns)?;
        let each = columns / format.elements() as u64;
        let blocks = blocks(source, format, weights, rows.saturating_mul(each))?;
        let row = |row: &[QuantBlock]| {
            let mut lanes = vec![0_f32; 32];
            for (at, (x, y)) in row.iter().flat_map(QuantBlock::values).zip(&y).enumerate() {
                lanes[at % 32] += x * y;
            }
            tree(lanes, |a, b| a + b)
        };
        match each {
            0 => Ok(vec![0.0; rows as usize]),
            each => blocks.chunks_exact(each as usize).map(row).collect(),
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::Shape;
    use crate::harness::{TestDevice, arguments};
    use crate::quantized::blocks::Format;

    const FORMATS: [(&str, Format); 10] = [
        ("q4_0", Format::Q4_0),
        ("q4_1", Format::Q4_1),
        ("q5_0", Format::Q5_0),
        ("q5_1", Format::Q5_1),
        ("q8_0", Format::Q8_0),
        ("q2_K", Format::Q2K),
        ("q3_K", Format::Q3K),
        ("q4_K", Format::Q4K),
        ("q5_K", Format::Q5K),
        ("q6_K", Format::Q6K),
    ];
    const COLUMNS: usize = 512;
    const ROWS: usize = 3;

    /// Blocks with bytes in a fixed order, but with small scales in f16.
    fn weights(format: Format) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in 0..ROWS * COLUMNS / format.elements() {
            let mut block: Vec<u8> =
                (0..format.bytes()).map(|at| ((at * 37 + number * 101) % 251) as u8).collect();
            let halves: &[usize] = match format {
                Format::Q4_0 | Format::Q5_0 | Format::Q8_0 => &[0],
                Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => &[0, 2],
                Format::Q2K => &[80, 82],
                Format::Q3K => &[108],
                _ => &[208],
            };
            for &at in halves {
                let scale = half::f16::from_f32(0.01 * (1 + number % 3) as f32);
                block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
            }
            bytes.extend(block);
        }
        bytes
    }

    fn vectors(count: usize) -> Vec<f32> {
        (0..count * COLUMNS).map(|at| ((at * 29) % 61) as f32 / 30.0 - 1.0).collect()
    }

    fn expected(format: Format, weights: &[u8], vectors: &[f32]) -> Vec<f64> {
        let blocks = weights.chunks_exact(format.bytes()).map(|bytes| format.decode(bytes));
        let values: Vec<f32> =
            blocks.flat_map(|block| block.values().collect::<Vec<_>>()).collect();
        vectors
            .chunks_exact(COLUMNS)
            .flat_map(|vector| {
                values.chunks_exact(COLUMNS).map(move |row| {
                    row.iter().zip(vector).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
                })
            })
            .collect()
    }

    /// Compares with the norm of the results, because a vector of 8 bits is not exact.
    #[track_caller]
    fn assert_near(name: &str, actual: &[f32], expected: &[f64], tolerance: f64) {
        let norm = expected.iter().map(|x| x * x).sum::<f64>().sqrt();
        let errors = actual.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).powi(2));
        let error = errors.sum::<f64>().sqrt();
        assert_eq!(actual.len(), expected.len(), "{name}");
        assert!(error <= tolerance * norm, "{name}: {error} of {norm}: {actual:?} {expected:?}");
    }

    #[test]
    fn matrices_are_multiplied_in_every_format() {
        for (name, format) in FORMATS {
            let mut device = TestDevice::new();
            let (weights, inputs) = (weights(format), vectors(2));
            let expected = expected(format, &weights, &inputs);
            let (x, from) = (device.upload(&weights), device.upload(&inputs));
            let y = device.allocate(2 * COLUMNS / 32 * 36);
            let to = device.allocate(2 * ROWS * 4);
            let shape = Shape { grid: [2, 2, 1], block: [256, 1, 1] };
            let (columns, rows) = (COLUMNS as i32, ROWS as i32);
            device.launch_shaped("quantize_q8_1", shape, &arguments![from, y, columns, columns]);
            let arguments = arguments![x, y, to, columns, rows, 2_i32, columns, rows];
            device.launch(&format!("mul_mat_{name}"), &arguments);
            let actual: Vec<f32> = device.download(to, 2 * ROWS).expect("the result is known");
            assert_near(name, &actual, &expected, 2e-2);
            // Without the vectors the result is unknown.
            let unknown = device.allocate(2 * COLUMNS / 32 * 36);
            let arguments = arguments![x, unknown, to, columns, rows, 2_i32, columns, rows];
            device.launch(&format!("mul_mat_{name}"), &arguments);
            assert_eq!(device.download::<f32>(to, 1), None);
        }
    }

    #[test]
    fn k_formats_are_multiplied_with_a_vector_of_f32() {
        for (name, format) in &FORMATS[5..] {
            let mut device = TestDevice::new();
            let (weights, inputs) = (weights(*format), vectors(1));
            let expected = expected(*format, &weights, &inputs);
            let (x, y) = (device.upload(&weights), device.upload(&inputs));
            let to = device.allocate(ROWS * 4);
            let mut arguments = arguments![x, y, to, COLUMNS as i32, ROWS as i32].to_vec();
            if *format == Format::Q5K {
                arguments.pop();
            }
            let name = format!("dequantize_mul_mat_vec_{}", name.to_lowercase());
            device.launch_blocks(&name, ROWS as u32, 32, &arguments);
            let actual: Vec<f32> = device.download(to, ROWS).expect("the result is known");
            assert_near(&name, &actual, &expected, 1e-5);
        }
    }
}
