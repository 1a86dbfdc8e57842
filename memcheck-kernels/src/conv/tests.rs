use super::*;
use crate::harness::{TestDevice, arguments};

/// Row-major strides.
fn strides(dims: &[i64]) -> Vec<i64> {
    (0..dims.len()).map(|axis| dims[axis + 1..].iter().product()).collect()
}

/// The dims and strides of contiguous tensors.
fn info(tensors: &[&[i64]]) -> Vec<i64> {
    tensors.iter().flat_map(|dims| [dims.to_vec(), strides(dims)].concat()).collect()
}

/// A convolution of one dim with stride, padding, dilation.
fn conv1d<T: Element>(
    suffix: &str,
    (dims, image): (&[i64], &[T]),
    (of_kernel, kernel): (&[i64], &[T]),
    out: usize,
    [stride, padding, dilation]: [usize; 3],
) -> Option<Vec<T>> {
    let mut device = TestDevice::new();
    let count = (dims[0] * of_kernel[0]) as usize * out;
    let (from, weights) = (device.upload(image), device.upload(kernel));
    let (info, to) = (device.upload(&info(&[dims, of_kernel])), device.allocate(count * T::WIDTH));
    device.launch(
        &format!("conv1d_{suffix}"),
        &arguments![1_usize, out, stride, padding, dilation, info, from, weights, to],
    );
    device.download(to, count)
}

#[test]
fn a_convolution_of_one_dim_sums_products() {
    let image: (&[i64], &[f32]) = (&[1, 1, 4], &[1.0, 2.0, 3.0, 4.0]);
    let kernel: (&[i64], &[f32]) = (&[1, 1, 2], &[1.0, 10.0]);
    let conv = |out, options| conv1d("f32", image, kernel, out, options).unwrap();
    assert_eq!(conv(3, [1, 0, 1]), [21_f32, 32.0, 43.0]);
    assert_eq!(conv(2, [2, 0, 1]), [21_f32, 43.0]);
    assert_eq!(conv(5, [1, 1, 1]), [10_f32, 21.0, 32.0, 43.0, 4.0]);
    // The kernel multiplies the whole position by the dilation. The CPU gives 31, 42.
    assert_eq!(conv(2, [1, 0, 2]), [31_f32, 3.0]);
    // Two channels to two channels, with two images.
    let image: (&[i64], &[f64]) = (&[2, 2, 1], &[1.0, 2.0, 3.0, 4.0]);
    let kernel: (&[i64], &[f64]) = (&[2, 2, 1], &[1.0, 10.0, 100.0, 1000.0]);
    let result = conv1d("f64", image, kernel, 1, [1, 0, 1]);
    assert_eq!(result, Some(vec![21_f64, 2100.0, 43.0, 4300.0]));
}

#[test]
fn sums_have_the_type_of_the_device() {
    let bytes = conv1d("u8", (&[1, 1, 1], &[200_u8]), (&[1, 1, 1], &[2]), 1, [1, 0, 1]);
    assert_eq!(bytes, Some(vec![144_u8]));
    let words = conv1d("u32", (&[1, 1, 1], &[u32::MAX]), (&[1, 1, 1], &[2]), 1, [1, 0, 1]);
    assert_eq!(words, Some(vec![u32::MAX - 1]));
    // 2048 + 1 + 1 in f32, then rounded.
    let halves = [2048.0, 1.0, 1.0].map(f16::from_f32);
    let result = conv1d("f16", (&[1, 1, 3], &halves), (&[1, 1, 3], &[f16::ONE; 3]), 1, [1, 0, 1]);
    assert_eq!(result, Some(vec![f16::from_f32(2050.0)]));
    let halves = [256.0, 1.0, 1.0].map(bf16::from_f32);
    let result = conv1d("bf16", (&[1, 1, 3], &halves), (&[1, 1, 3], &[bf16::ONE; 3]), 1, [1, 0, 1]);
    assert_eq!(result, Some(vec![bf16::from_f32(258.0)]));
}

#[test]
fn a_convolution_of_two_dims_sums_products() {
    let mut device = TestDevice::new();
    let from = device.upload(&[1_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let kernel = device.upload(&[1_f32, 0.0, 0.0, 10.0]);
    let to = device.allocate(64);
    let square = device.upload(&info(&[&[1, 1, 3, 3], &[1, 1, 2, 2]]));
    let mut conv =
        |info: u64, kernel: u64, [w, h]: [usize; 2], [stride, padding, dilation]: [usize; 3]| {
            let all = arguments![1_usize, w, h, stride, padding, dilation, info, from, kernel, to];
            device.launch("conv2d_f32", &all);
            device.download::<f32>(to, w * h).unwrap()
        };
    assert_eq!(conv(square, kernel, [2, 2], [1, 0, 1]), [51_f32, 62.0, 84.0, 95.0]);
    assert_eq!(conv(square, kernel, [1, 1], [2, 0, 2]), [91_f32]);
    assert_eq!(conv(square, kernel, [4, 4], [1, 1, 1])[..5], [10_f32, 20.0, 30.0, 0.0, 40.0]);
    // The first two rows, and a kernel of one row.
    let mut device = TestDevice::new();
    let from = device.upload(&[1_u8, 2, 3, 4, 5, 6]);
    let (kernel, to) = (device.upload(&[1_u8, 10]), device.allocate(4));
    let wide = device.upload(&info(&[&[1, 1, 2, 3], &[1, 1, 1, 2]]));
    let all =
        arguments![1_usize, 2_usize, 2_usize, 1_usize, 0_usize, 1_usize, wide, from, kernel, to];
    device.launch("conv2d_u8", &all);
    assert_eq!(device.download(to, 4), Some(vec![21_u8, 32, 54, 65]));
    // The same image, stored by columns, and a kernel whose only element is repeated.
    let from = device.upload(&[1_u8, 4, 2, 5, 3, 6]);
    let words = [1_i64, 1, 2, 3, 6, 6, 1, 2, 1, 1, 1, 2, 0, 0, 0, 0];
    let by_columns = device.upload(&words);
    let all = arguments![
        1_usize, 2_usize, 2_usize, 1_usize, 0_usize, 1_usize, by_columns, from, kernel, to
    ];
    device.launch("conv2d_u8", &all);
    assert_eq!(device.download(to, 4), Some(vec![3_u8, 5, 9, 11]));
}

#[test]
fn a_transposed_convolution_spreads_each_element() {
    let conv = |dims: &[i64],
                image: &[f32],
                of_kernel: &[i64],
                kernel: &[f32],
                out: usize,
                [stride, padding, dilation]: [usize; 3]| {
        let mut device = TestDevice::new();
        let (from, weights) = (device.upload(image), device.upload(kernel));
        let info = device.upload(&info(&[dims, of_kernel]));
        let to = device.allocate(64);
        let all =
            arguments![1_usize, out, stride, padding, 0_usize, dilation, info, from, weights, to];
        device.launch("conv_transpose1d_f32", &all);
        device.download::<f32>(to, out * of_kernel[1] as usize).unwrap()
    };
    let one = |out, options| conv(&[1, 1, 2], &[1.0, 2.0], &[1, 1, 2], &[1.0, 10.0], out, options);
    assert_eq!(one(3, [1, 0, 1]), [1_f32, 12.0, 20.0]);
    assert_eq!(one(4, [2, 0, 1]), [1_f32, 10.0, 2.0, 20.0]);
    assert_eq!(one(1, [1, 1, 1]), [12_f32]);
    assert_eq!(one(4, [1, 0, 2]), [1_f32, 2.0, 10.0, 20.0]);
    // The kernel has the input channels first.
    let kernel = [1_f32, 10.0, 100.0, 1000.0];
    let result = conv(&[1, 2, 1], &[1.0, 2.0], &[2, 2, 1], &kernel, 1, [1, 0, 1]);
    assert_eq!(result, [201_f32, 2010.0]);
    // Two dims: two rows of three.
    let mut device = TestDevice::new();
    let (from, kernel) = (device.upload(&[1_f64, 2.0]), device.upload(&kernel.map(f64::from)));
    let info = device.upload(&info(&[&[1, 1, 1, 2], &[1, 1, 2, 2]]));
    let to = device.allocate(48);
    let [el, w, h, stride, padding, out_padding, dilation] = [6_usize, 3, 2, 1, 0, 0, 1];
    let all = arguments![el, w, h, stride, padding, out_padding, dilation, info, from, kernel, to];
    device.launch("conv_transpose2d_f64", &all);
    assert_eq!(device.download(to, 6), Some(vec![1_f64, 12.0, 20.0, 100.0, 1200.0, 2000.0]));
}

#[test]
fn columns_of_one_dim_are_the_windows_of_each_channel() {
    let mut device = TestDevice::new();
    let from = device.upload(&[1_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let info = device.upload(&info(&[&[1, 2, 3]]));
    let to = device.allocate(64);
    let mut columns = |out: usize, stride: usize, padding: usize, dilation: usize| {
        let all = arguments![2 * out, out, 2_usize, stride, padding, dilation, info, from, to];
        device.launch("im2col1d_f32", &all);
        device.download::<f32>(to, 4 * out).unwrap()
    };
    assert_eq!(columns(2, 1, 0, 1), [1_f32, 2.0, 4.0, 5.0, 2.0, 3.0, 5.0, 6.0]);
    assert_eq!(columns(1, 1, 0, 2), [1_f32, 3.0, 4.0, 6.0]);
    let padded = [0_f32, 1.0, 0.0, 4.0, 2.0, 3.0, 5.0, 6.0];
    assert_eq!(columns(2, 2, 1, 1), padded);
    let padded = columns(4, 1, 1, 1);
    assert_eq!(
        (&padded[..4], &padded[12..]),
        (&[0_f32, 1.0, 0.0, 4.0][..], &[3_f32, 0.0, 6.0, 0.0][..])
    );
}

#[test]
fn columns_of_two_dims_are_the_windows_of_each_image() {
    let mut device = TestDevice::new();
    let to = device.allocate(64);
    let mut columns = |image: &[u8], words: &[i64], sizes: [usize; 8]| {
        let (from, info) = (device.upload(image), device.upload(words));
        let [count, h, w, h_k, w_k, stride, padding, dilation] = sizes;
        let all = arguments![count, h, w, h_k, w_k, stride, padding, dilation, info, from, to];
        device.launch("im2col_u8", &all);
        device.download::<u8>(to, count)
    };
    let rows = [1_u8, 2, 3, 4, 5, 6];
    let windows = Some(vec![1_u8, 2, 4, 5, 2, 3, 5, 6]);
    let dims = info(&[&[1, 1, 2, 3]]);
    assert_eq!(columns(&rows, &dims, [8, 1, 2, 2, 2, 1, 0, 1]), windows);
    // Stored by columns.
    let words = [1_i64, 1, 2, 3, 6, 6, 1, 2];
    assert_eq!(columns(&[1, 4, 2, 5, 3, 6], &words, [8, 1, 2, 2, 2, 1, 0, 1]), windows);
    // Windows of 1 x 2 with a padding of 1: above the image all is zero.
    let padded = columns(&rows, &dims, [32, 4, 4, 1, 2, 1, 1, 1]).unwrap();
    assert_eq!(padded[..12], [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2]);
    // Two images of two channels of one pixel.
    let dims = info(&[&[2, 2, 1, 1]]);
    assert_eq!(columns(&[1, 2, 3, 4], &dims, [4, 1, 1, 1, 1, 1, 0, 1]), Some(vec![1, 2, 3, 4]));
}

#[test]
fn columns_are_added_where_they_overlap() {
    let mut device = TestDevice::new();
    let from = device.upload(&[1_f32, 2.0, 3.0, 4.0]);
    let to = device.allocate(64);
    let mut add = |count: usize, [out, length, channels, stride]: [usize; 4]| {
        let all = arguments![count, out, length, channels, 2_usize, stride, from, to];
        device.launch("col2im1d_f32", &all);
        device.download::<f32>(to, count).unwrap()
    };
    assert_eq!(add(3, [3, 2, 1, 1]), [1_f32, 5.0, 4.0]);
    assert_eq!(add(4, [4, 2, 1, 2]), [1_f32, 2.0, 3.0, 4.0]);
    assert_eq!(add(4, [2, 1, 2, 1]), [1_f32, 2.0, 3.0, 4.0]);
    // Two batch elements.
    assert_eq!(add(4, [2, 1, 1, 1]), [1_f32, 2.0, 3.0, 4.0]);
    // 2048 + 1 is rounded to 2048 in f16.
    let from = device.upload(&[1.0, 1.0, 2048.0, 1.0].map(f16::from_f32));
    let all = arguments![3_usize, 3_usize, 2_usize, 1_usize, 2_usize, 1_usize, from, to];
    device.launch("col2im1d_f16", &all);
    assert_eq!(device.download(to, 3), Some([1.0, 2048.0, 1.0].map(f16::from_f32).to_vec()));
}

#[test]
fn an_unknown_pixel_makes_the_result_unknown_and_an_unknown_shape_the_block() {
    let mut device = TestDevice::new();
    let from = device.allocate(8);
    device.launch("fill_f32", &arguments![from, 1_f32, 1_usize]);
    let (kernel, to) = (device.upload(&[1_f32]), device.upload(&[9_f32; 4]));
    let known = device.upload(&info(&[&[1, 1, 2], &[1, 1, 1]]));
    let all = arguments![1_usize, 2_usize, 1_usize, 0_usize, 1_usize, known, from, kernel, to];
    device.launch("conv1d_f32", &all);
    assert_eq!(device.download::<f32>(to, 1), None);
    assert_eq!(device.download(to + 8, 2), Some(vec![9_f32; 2]));
    // Only the first pixel is needed.
    let all = arguments![1_usize, 1_usize, 1_usize, 0_usize, 1_usize, known, from, kernel, to];
    device.launch("conv1d_f32", &all);
    assert_eq!(device.download(to, 1), Some(vec![1_f32]));
    let unknown = device.allocate(96);
    let all = arguments![1_usize, 1_usize, 1_usize, 0_usize, 1_usize, unknown, from, kernel, to];
    device.launch("conv1d_f32", &all);
    assert_eq!(device.download::<f32>(to + 12, 1), None);
}
