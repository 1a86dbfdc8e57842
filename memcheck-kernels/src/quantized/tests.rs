use super::*;
use crate::harness::{TestDevice, arguments};
use crate::launch::Shape;

fn half_bytes(value: f32) -> [u8; 2] {
    f16::from_f32(value).to_le_bytes()
}

/// A block of `Q8_0` with all quants equal.
fn q8_0(d: f32, quant: i8) -> Vec<u8> {
    [&half_bytes(d)[..], &[quant as u8; 32]].concat()
}

/// A block of `Q4_0` with all elements `d * (nibble - 8)`.
fn q4_0(d: f32, nibble: u8) -> Vec<u8> {
    [&half_bytes(d)[..], &[nibble * 17; 16]].concat()
}

fn quantized(device: &mut TestDevice, rows: &[Vec<f32>]) -> u64 {
    let columns = rows[0].len();
    let padded = columns.next_multiple_of(512);
    let from = device.upload(&rows.concat());
    let to = device.allocate(rows.len() * padded / 32 * 36);
    let shape = Shape { grid: [padded as u32 / 256, rows.len() as u32, 1], block: [256, 1, 1] };
    let all = arguments![from, to, columns as i32, padded as i32];
    device.launch_shaped("quantize_q8_1", shape, &all);
    to
}

#[test]
fn blocks_are_dequantized_to_both_types() {
    let mut device = TestDevice::new();
    let from = device.upload(&[q4_0(0.5, 15), q4_0(2.0, 0)].concat());
    let to = device.allocate(256);
    device.launch_blocks("dequantize_block_q4_0_f32", 1, 32, &arguments![from, to, 2_i32]);
    assert_eq!(device.download(to, 64), Some([[3.5_f32; 32], [-16.0; 32]].concat()));
    let from = device.upload(&q8_0(0.5, -3));
    device.launch_blocks("dequantize_block_q8_0_f16", 1, 32, &arguments![from, to, 1_i32]);
    assert_eq!(device.download(to, 32), Some(vec![f16::from_f32(-1.5); 32]));
    // q5_1: the count is that of the elements.
    let block = [&half_bytes(1.0)[..], &half_bytes(0.5), &[0xff; 4], &[0; 16]].concat();
    let from = device.upload(&block);
    device.launch_blocks("dequantize_block_q5_1_f32", 1, 256, &arguments![from, to, 32_i32]);
    assert_eq!(device.download(to, 32), Some(vec![16.5_f32; 32]));
    // A block of 256 elements for each block of threads.
    let block =
        [&[0x21_u8; 16][..], &[0b0101_0101; 64], &half_bytes(1.0), &half_bytes(0.5)].concat();
    let from = device.upload(&[&block[..], &block].concat());
    let to = device.allocate(4 * 512);
    device.launch_blocks("dequantize_block_q2_K_f32", 2, 64, &arguments![from, to]);
    assert_eq!(device.download(to, 512), Some(vec![0_f32; 512]));
}

#[test]
fn rows_are_selected_and_dequantized() {
    let mut device = TestDevice::new();
    let from = device.upload(&[q8_0(1.0, 1), q8_0(1.0, 2), q8_0(0.5, 3)].concat());
    let (ids, to) = (device.upload(&[2_u32, 0]), device.allocate(256));
    let all = arguments![from, ids, to, 32_i64, 34_usize];
    device.launch_blocks("get_rows_q8_0", 2, 256, &all);
    assert_eq!(device.download(to, 64), Some([[1.5_f32; 32], [1.0; 32]].concat()));
    let from = device.upload(&[1.0, 2.0, 3.0, 4.0].map(bf16::from_f32));
    let ids = device.upload(&[1_u32]);
    device.launch_blocks("get_rows_bf16", 1, 256, &arguments![from, ids, to, 2_i64, 4_usize]);
    assert_eq!(device.download(to, 2), Some(vec![3_f32, 4.0]));
    let unknown = device.allocate(4);
    device.launch_blocks("get_rows_bf16", 1, 256, &arguments![from, unknown, to, 2_i64, 4_usize]);
    assert_eq!(device.download::<f32>(to, 1), None);
}

#[test]
fn a_vector_is_quantized_with_its_scale_and_its_sum() {
    let mut device = TestDevice::new();
    let mut row = vec![0_f32; 33];
    // The largest is 127, so that the scale is 1. Halves are rounded away from zero.
    (row[0], row[1], row[2], row[32]) = (-127.0, 2.5, -0.4, 254.0);
    let to = quantized(&mut device, &[row.clone(), row]);
    let bytes: Vec<u8> = device.download(to, 2 * 16 * 36).unwrap();
    let mut first = [&half_bytes(1.0)[..], &half_bytes(-124.9), &[129, 3, 0]].concat();
    first.resize(36, 0);
    assert_eq!(bytes[..36], first);
    assert_eq!(bytes[36..42], [&half_bytes(2.0)[..], &half_bytes(254.0), &[127, 0]].concat());
    assert_eq!(bytes[72..16 * 36], [0; 14 * 36]);
    assert_eq!(bytes[16 * 36..][..36], first);
}

/// The exact numbers of candle's own test `cuda_mmv_q8_1`: a vector with 0, 1, …, 255, multiplied
/// by itself after its quantization to 4 bits.
#[test]
fn a_product_has_the_exact_result_of_a_device() {
    let vector: Vec<f32> = (0..256).map(|at| at as f32).collect();
    let mut weights = Vec::new();
    for block in vector.chunks_exact(32) {
        // candle's quantization: the element of the largest magnitude becomes -8.
        let d = block[31] / -8.0;
        weights.extend(half_bytes(d));
        let quant = |x: f32| ((x * (1.0 / d) + 8.5) as u8).min(15);
        weights.extend((0..16).map(|at| quant(block[at]) | quant(block[at + 16]) << 4));
    }
    let mut device = TestDevice::new();
    let y = quantized(&mut device, std::slice::from_ref(&vector));
    let (x, to) = (device.upload(&weights), device.allocate(4));
    let all = arguments![x, y, to, 256_i32, 1_i32, 512_i32, 1_i32];
    device.launch_blocks("mul_mat_vec_q4_0_q8_1_cuda1", 1, 128, &all);
    assert_eq!(device.download(to, 1), Some(vec![5_561_664.5_f32]));
    // Without the quantization of the vector.
    let y = device.upload(&vector);
    let all = arguments![x, y, to, 256_i32, 1_i32];
    device.launch_blocks("dequantize_mul_mat_vec_q4_0_cuda", 1, 32, &all);
    assert_eq!(device.download(to, 1), Some(vec![5_561_851_f32]));
}

#[test]
fn each_row_is_multiplied_with_each_vector() {
    let mut device = TestDevice::new();
    // 2 rows of 32: all 2, all -3. 3 vectors: all 1, all -1, all 2 (127 * scale).
    let x = device.upload(&[q8_0(1.0, 2), q8_0(0.5, -6)].concat());
    let vectors = [127.0, -127.0, 254.0].map(|x| vec![x; 32]);
    let y = quantized(&mut device, &vectors);
    let to = device.upload(&[9_f32; 9]);
    let all = arguments![x, y, to, 32_i32, 2_i32, 512_i32, 3_i32];
    device.launch_blocks("mul_mat_vec_q8_0_q8_1_cuda3", 1, 128, &all);
    let one = 127_f32 * 32.0;
    let expected =
        [2.0 * one, -3.0 * one, 9.0, -2.0 * one, 3.0 * one, 9.0, 4.0 * one, -6.0 * one, 9.0];
    assert_eq!(device.download(to, 9), Some(expected.to_vec()));
}

/// Whatever the format, the product is near that of the dequantized numbers.
#[test]
fn a_product_of_every_format_is_near_that_of_its_values() {
    let formats = [
        (Format::Q4_0, "q4_0"),
        (Format::Q4_1, "q4_1"),
        (Format::Q5_0, "q5_0"),
        (Format::Q5_1, "q5_1"),
        (Format::Q8_0, "q8_0"),
        (Format::Q2K, "q2_K"),
        (Format::Q3K, "q3_K"),
        (Format::Q4K, "q4_K"),
        (Format::Q5K, "q5_K"),
        (Format::Q6K, "q6_K"),
    ];
    for (format, name) in formats {
        let mut device = TestDevice::new();
        let count = 512 / format.elements();
        let mut state = 1_u32;
        let mut bytes: Vec<u8> = (0..count * format.bytes())
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        // Scales of a moderate size, where the format has them.
        for block in bytes.chunks_exact_mut(format.bytes()) {
            let places: &[usize] = match format {
                Format::Q4_0 | Format::Q5_0 | Format::Q8_0 => &[0],
                Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => &[0, 2],
                Format::Q2K => &[80, 82],
                Format::Q3K => &[108],
                _ => &[208],
            };
            places.iter().for_each(|&at| block[at..at + 2].copy_from_slice(&half_bytes(0.25)));
        }
        let vector: Vec<f32> = (0..512).map(|at| ((at * 37 % 101) as f32 - 50.0) / 8.0).collect();
        let blocks = bytes.chunks_exact(format.bytes()).map(|block| format.decode(block));
        let values: Vec<f32> =
            blocks.flat_map(|block| block.values().collect::<Vec<_>>()).collect();
        let terms = || values.iter().zip(&vector).map(|(a, b)| f64::from(a * b));
        let (expected, size): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
        let y = quantized(&mut device, std::slice::from_ref(&vector));
        let (x, to) = (device.upload(&bytes), device.allocate(4));
        let all = arguments![x, y, to, 512_i32, 1_i32, 512_i32, 1_i32];
        device.launch_blocks(&format!("mul_mat_vec_{name}_q8_1_cuda1"), 1, 128, &all);
        let result = f64::from(device.download::<f32>(to, 1).unwrap()[0]);
        assert!((result - expected).abs() < size / 200.0, "{name}: {result}, {expected}");
    }
}

#[test]
fn each_task_has_its_expert() {
    let mut device = TestDevice::new();
    // Two experts of 1 x 256 in q2_K: all elements 1 and all elements 2.
    let expert = |d: f32| {
        [&[0x01_u8; 16][..], &[0b0101_0101; 64], &half_bytes(d), &half_bytes(0.0)].concat()
    };
    let weights = device.upload(&[expert(1.0), expert(2.0)].concat());
    let inputs = quantized(&mut device, &[vec![127.0; 256], vec![254.0; 256]]);
    let (ids, to) = (device.upload(&[1_u32, 0, 0, 1]), device.allocate(16));
    let shape = Shape { grid: [1, 2, 2], block: [32, 4, 1] };
    let all = |ids: u64, shared: i32| {
        arguments![weights, inputs, ids, to, 1_i32, 256_i32, 2_i32, 2_i32, 512_i32, shared]
    };
    device.launch_shaped("indexed_moe_forward_q2k_q8_1", shape, &all(ids, 1));
    let one = 127_f32 * 256.0;
    assert_eq!(device.download(to, 4), Some(vec![2.0 * one, one, 2.0 * one, 4.0 * one]));
    // An input for each task: here one batch element with two tasks.
    let shape = Shape { grid: [1, 1, 2], block: [32, 4, 1] };
    device.launch_shaped("indexed_moe_forward_q2k_q8_1", shape, &all(ids, 2));
    assert_eq!(device.download(to, 2), Some(vec![2.0 * one, 2.0 * one]));
    let unknown = device.allocate(16);
    device.launch_shaped("indexed_moe_forward_q2k_q8_1", shape, &all(unknown, 2));
    assert_eq!(device.download::<f32>(to, 1), None);
    assert_eq!(device.download(to + 8, 1), Some(vec![2.0 * one]));
}
