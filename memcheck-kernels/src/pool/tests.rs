use super::*;
use crate::harness::{TestDevice, arguments};

use half::{bf16, f16};

/// Pools an image with the shape and the strides of `words`.
fn pool<T: Element>(
    name: &str,
    image: &[T],
    words: [i64; 8],
    [rows, columns, row_step, column_step]: [usize; 4],
    count: usize,
) -> Option<Vec<T>> {
    let mut device = TestDevice::new();
    let (from, info) = (device.upload(image), device.upload(&words));
    let to = device.allocate(count * T::WIDTH);
    let all = arguments![count, rows, columns, row_step, column_step, info, from, to];
    device.launch(name, &all);
    device.download(to, count)
}

/// One channel of two rows and three columns.
const WIDE: [i64; 8] = [1, 1, 2, 3, 6, 6, 3, 1];

#[test]
fn the_mean_of_each_window() {
    let image = [1_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let result = pool("avg_pool2d_f32", &image, WIDE, [2, 1, 1, 1], 3);
    assert_eq!(result, Some(vec![2.5_f32, 3.5, 4.5]));
    let result = pool("avg_pool2d_f32", &image, WIDE, [1, 2, 1, 1], 4);
    assert_eq!(result, Some(vec![1.5_f32, 2.5, 4.5, 5.5]));
    // A step of 2 leaves one window in each row.
    let result = pool("avg_pool2d_f32", &image, WIDE, [1, 2, 1, 2], 2);
    assert_eq!(result, Some(vec![1.5_f32, 4.5]));
    // Integers are truncated.
    let result = pool("avg_pool2d_u8", &[1_u8, 2, 3, 4, 5, 6], WIDE, [1, 2, 1, 1], 4);
    assert_eq!(result, Some(vec![1_u8, 2, 4, 5]));
    let result = pool("avg_pool2d_u32", &[1_u32, 2, 3, 4, 5, 6], WIDE, [2, 1, 1, 1], 3);
    assert_eq!(result, Some(vec![2_u32, 3, 4]));
    // The same image, stored by columns, in two types of 16 bits.
    let by_columns = [1, 1, 2, 3, 6, 6, 1, 2];
    let halves = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
    let expected = [2.5, 3.5, 4.5];
    let result = pool("avg_pool2d_f16", &halves.map(f16::from_f32), by_columns, [2, 1, 1, 1], 3);
    assert_eq!(result, Some(expected.map(f16::from_f32).to_vec()));
    let result = pool("avg_pool2d_bf16", &halves.map(bf16::from_f32), by_columns, [2, 1, 1, 1], 3);
    assert_eq!(result, Some(expected.map(bf16::from_f32).to_vec()));
}

/// The device multiplies by a third in f32. The CPU gives exactly 2.
#[test]
fn the_mean_of_doubles_has_a_factor_of_32_bits() {
    let image = [1_f64, 2.0, 3.0];
    let result = pool("avg_pool2d_f64", &image, [1, 1, 1, 3, 3, 3, 3, 1], [1, 3, 1, 1], 1);
    assert_eq!(result, Some(vec![6.0 * f64::from(1_f32 / 3.0)]));
    assert_ne!(result, Some(vec![2.0]));
}

#[test]
fn the_largest_of_each_window() {
    let image = [1_f32, -2.0, 3.0, 4.0, 5.0, f32::NAN];
    let result = pool("max_pool2d_f32", &image, WIDE, [2, 2, 1, 1], 2);
    assert_eq!(result, Some(vec![5_f32, 5.0]));
    let result: Vec<f16> =
        pool("max_pool2d_f16", &image.map(f16::from_f32), WIDE, [2, 2, 1, 1], 2).unwrap();
    assert!(result[0] == f16::from_f32(5.0) && result[1].is_nan());
    let result = pool("max_pool2d_f32", &image[..4], [2, 2, 1, 1, 2, 1, 1, 1], [1, 1, 1, 1], 4);
    assert_eq!(result, Some(image[..4].to_vec()));
    let result = pool("max_pool2d_u8", &[1_u8, 200, 3, 4, 5, 6], WIDE, [1, 3, 1, 1], 2);
    assert_eq!(result, Some(vec![200_u8, 6]));
    assert_eq!(pool("max_pool2d_u8", &[1_u8; 6], WIDE, [3, 1, 1, 1], 1), None);
}

#[test]
fn the_nearest_pixel_is_repeated() {
    let mut device = TestDevice::new();
    let from = device.upload(&[1_u32, 2]);
    let info = device.upload(&[1_i64, 1, 1, 2, 2, 2, 2, 1]);
    let to = device.allocate(32);
    device.launch(
        "upsample_nearest2d_u32",
        &arguments![2_usize, 4_usize, 0.5_f64, 0.5_f64, info, from, to],
    );
    assert_eq!(device.download(to, 8), Some(vec![1_u32, 1, 2, 2, 1, 1, 2, 2]));
    // A position beyond the image is that of its last pixel.
    device.launch(
        "upsample_nearest2d_f32",
        &arguments![1_usize, 3_usize, 1_f64, 9_f64, info, from, to],
    );
    assert_eq!(device.download(to, 3), Some(vec![1_u32, 2, 2]));
}

fn bilinear<T: Element>(
    suffix: &str,
    words: [i64; 8],
    image: &[T],
    [height, width]: [usize; 2],
    is_aligned: bool,
    factor: Option<f64>,
) -> Option<Vec<T>> {
    let mut device = TestDevice::new();
    let (from, info) = (device.upload(image), device.upload(&words));
    let to = device.allocate(height * width * T::WIDTH);
    let (has, factor) = (u8::from(factor.is_some()), factor.unwrap_or_default());
    let is_aligned = u8::from(is_aligned);
    device.launch(
        &format!("upsample_bilinear2d_{suffix}"),
        &arguments![width, height, is_aligned, has, factor, has, factor, info, from, to],
    );
    device.download(to, height * width)
}

#[test]
fn pixels_are_interpolated_in_both_directions() {
    let row = [1, 1, 1, 2, 2, 2, 2, 1];
    let pixels = [0_f32, 10.0];
    let wide = |width, is_aligned, factor| {
        bilinear("f32", row, &pixels, [1, width], is_aligned, factor).unwrap()
    };
    assert_eq!(wide(4, false, None), [0_f32, 2.5, 7.5, 10.0]);
    assert_eq!(wide(4, false, Some(2.0)), [0_f32, 2.5, 7.5, 10.0]);
    assert_eq!(wide(4, false, Some(4.0)), [0_f32, 0.0, 1.25, 3.75]);
    assert_eq!(wide(3, true, None), [0_f32, 5.0, 10.0]);
    assert_eq!(wide(1, true, None), [0_f32]);
    let column = [1, 1, 2, 1, 2, 2, 1, 1];
    let result = bilinear("u8", column, &[0_u8, 10], [4, 1], false, None);
    assert_eq!(result, Some(vec![0_u8, 2, 7, 10]));
    // The corners of a square and their means.
    let square = [1, 1, 2, 2, 4, 4, 2, 1];
    let result = bilinear("f64", square, &[0_f64, 2.0, 4.0, 10.0], [3, 3], true, None);
    assert_eq!(result, Some(vec![0_f64, 1.0, 2.0, 2.0, 4.0, 6.0, 4.0, 7.0, 10.0]));
    // Stored by columns.
    let square = [1, 1, 2, 2, 4, 4, 1, 2];
    let halves = [0.0, 4.0, 2.0, 10.0].map(bf16::from_f32);
    let result = bilinear("bf16", square, &halves, [3, 3], true, None);
    let expected = [0.0, 1.0, 2.0, 2.0, 4.0, 6.0, 4.0, 7.0, 10.0];
    assert_eq!(result, Some(expected.map(bf16::from_f32).to_vec()));
}

#[test]
fn an_unknown_pixel_has_an_unknown_result() {
    let mut device = TestDevice::new();
    let from = device.allocate(8);
    device.launch("fill_f32", &arguments![from, 1_f32, 1_usize]);
    let info = device.upload(&[1_i64, 1, 1, 2, 2, 2, 2, 1]);
    let to = device.upload(&[9_f32; 3]);
    let all = arguments![2_usize, 1_usize, 2_usize, 1_usize, 1_usize, info, from, to];
    device.launch("max_pool2d_f32", &all);
    assert_eq!(device.download::<f32>(to, 1), None);
    assert_eq!(device.download(to + 8, 1), Some(vec![9_f32]));
    // No dims, no elements.
    let info = device.upload(&[0_i64, 1, 1, 2, 2, 2, 2, 1]);
    let to = device.upload(&[9_f32]);
    let all = arguments![0_usize, 1_usize, 2_usize, 1_usize, 1_usize, info, from, to];
    device.launch("avg_pool2d_f32", &all);
    assert_eq!(device.download(to, 1), Some(vec![9_f32]));
}
