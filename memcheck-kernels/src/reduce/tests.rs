use super::*;
use crate::harness::{TestDevice, arguments};

/// Reduces rows of `each` elements, which are contiguous.
fn rows<T: Element, O: Element>(name: &str, each: usize, elements: &[T]) -> Option<Vec<O>> {
    let outputs = elements.len() / each;
    let info = [outputs as i64, each as i64, each as i64, 1];
    reduce(name, each, outputs, &info, elements)
}

/// Reduces as candle does, with as many threads as the elements need.
fn reduce<T: Element, O: Element>(
    name: &str,
    each: usize,
    outputs: usize,
    info: &[i64],
    elements: &[T],
) -> Option<Vec<O>> {
    let mut device = TestDevice::new();
    let rank = info.len() / 2;
    let (info, from) = (device.upload(info), device.upload(elements));
    let to = device.allocate(outputs * O::WIDTH);
    let threads = each.min(1024).next_power_of_two() as u32;
    device.launch_blocks(
        name,
        outputs as u32,
        threads,
        &arguments![outputs * each, each, rank, info, from, to],
    );
    device.download(to, outputs)
}

#[test]
fn integers_are_summed_and_wrap() {
    let bytes: Vec<u8> = (1..=40).collect();
    assert_eq!(rows("fast_sum_u8", 40, &bytes), Some(vec![820_u32 as u8]));
    let words: Vec<u32> = vec![u32::MAX; 34];
    assert_eq!(rows("fast_sum_u32", 34, &words), Some(vec![34_u32.wrapping_neg()]));
    let longs: Vec<i64> = (-50..50).collect();
    assert_eq!(rows("fast_sum_i64", 50, &longs), Some(vec![-1275_i64, 1225]));
}

#[test]
fn reals_are_summed() {
    let ones: Vec<f64> = (0..3000).map(f64::from).collect();
    assert_eq!(rows("fast_sum_f64", 1500, &ones), Some(vec![1_124_250_f64, 3_374_250.0]));
    let ones: Vec<f32> = (0..3000).map(|it| it as f32).collect();
    assert_eq!(rows("fast_sum_f32", 1500, &ones), Some(vec![1_124_250_f32, 3_374_250.0]));
    let ones = vec![bf16::ONE; 3000];
    // 1500 has 11 bits. bf16 keeps 8 of them.
    assert_eq!(rows("fast_sum_bf16", 1500, &ones), Some(vec![bf16::from_f32(1504.0); 2]));
}

/// Halves are summed in f16, unlike on the CPU: here a partial sum exceeds the range.
#[test]
fn a_sum_of_halves_exceeds_their_range_in_between() {
    let mut halves = vec![f16::from_f32(40_000.0); 64];
    halves[32..].fill(f16::from_f32(-40_000.0));
    // Thread t is first joined with thread t + 32.
    assert_eq!(rows("fast_sum_f16", 64, &halves), Some(vec![f16::ZERO]));
    for (at, half) in halves.iter_mut().enumerate() {
        *half = f16::from_f32(if at % 2 == 0 { 40_000.0 } else { -40_000.0 });
    }
    let sum: Vec<f16> = rows("fast_sum_f16", 64, &halves).unwrap();
    assert!(sum[0].is_nan(), "infinity and its negative were added last");
}

/// The order of the additions shows in a sum that is not exact: 1 is lost next to 2^24 unless it
/// meets another 1 first.
#[test]
fn singles_are_summed_in_the_order_of_the_device() {
    let big = (1 << 24) as f32;
    let mut singles = vec![0_f32; 64];
    // An aligned vector of four is added before the sum of its thread: 1 + 1 = 2.
    (singles[0], singles[1], singles[2]) = (1.0, 1.0, big);
    assert_eq!(rows("fast_sum_f32", 64, &singles), Some(vec![big + 2.0]));
    // Threads 0 and 1 have the first two vectors.
    (singles[0], singles[1], singles[2], singles[4]) = (big, 0.0, 0.0, 1.0);
    singles[8] = 1.0;
    // The tree of a warp first joins 0 with 2 (16, 8 and 4 threads above are zeros), then with 1.
    assert_eq!(rows("fast_sum_f32", 64, &singles), Some(vec![big]));
    // The threads of odd numbers meet each other first.
    (singles[8], singles[12]) = (0.0, 1.0);
    assert_eq!(rows("fast_sum_f32", 64, &singles), Some(vec![big + 2.0]));
}

#[test]
fn a_source_that_is_not_aligned_is_summed_element_by_element() {
    let big = (1 << 24) as f32;
    let mut elements = vec![0_f32; 65];
    (elements[1], elements[2], elements[3]) = (1.0, 1.0, big);
    let mut device = TestDevice::new();
    let info = device.upload(&[64_i64, 1]);
    let (from, to) = (device.upload(&elements), device.allocate(4));
    device.launch_blocks(
        "fast_sum_f32",
        1,
        64,
        &arguments![64_usize, 64_usize, 1_usize, info, from + 4, to],
    );
    // Threads 0, 1 and 2 have one element each: 0 and 2 are joined first and lose the 1.
    assert_eq!(device.download(to, 1), Some(vec![big]));
}

#[test]
fn a_column_is_reduced_through_its_strides() {
    // A 3 x 2 matrix, reduced over its first dim, which is moved to the end.
    let info = [2_i64, 3, 1, 2];
    let matrix = [1_f32, 20.0, 3.0, 10.0, 2.0, 30.0];
    assert_eq!(reduce("fast_max_f32", 3, 2, &info, &matrix), Some(vec![3_f32, 30.0]));
    assert_eq!(reduce("fast_min_f32", 3, 2, &info, &matrix), Some(vec![1_f32, 10.0]));
    assert_eq!(reduce("fast_argmax_f32", 3, 2, &info, &matrix), Some(vec![1_u32, 2]));
    assert_eq!(reduce("fast_argmin_f32", 3, 2, &info, &matrix), Some(vec![0_u32, 1]));
    // A row that is repeated 40 times.
    let info = [2_i64, 40, 1, 0];
    assert_eq!(reduce("fast_sum_f32", 40, 2, &info, &[1_f32, 2.0]), Some(vec![40_f32, 80.0]));
    assert_eq!(
        reduce("fast_sum_bf16", 40, 2, &info, &[bf16::ONE; 2]),
        Some(vec![bf16::from_f32(40.0); 2])
    );
}

#[test]
fn every_type_has_extremes() {
    assert_eq!(rows("fast_max_u8", 3, &[7_u8, 255, 0]), Some(vec![255_u8]));
    assert_eq!(rows("fast_min_u8", 3, &[7_u8, 255, 3]), Some(vec![3_u8]));
    assert_eq!(rows("fast_max_u32", 3, &[0_u32, 0, 0]), Some(vec![0_u32]));
    assert_eq!(rows("fast_min_u32", 3, &[u32::MAX; 3]), Some(vec![u32::MAX]));
    assert_eq!(rows("fast_max_i64", 3, &[i64::MIN; 3]), Some(vec![i64::MIN]));
    assert_eq!(rows("fast_min_i64", 3, &[-7_i64, 2, 0]), Some(vec![-7_i64]));
    assert_eq!(rows("fast_max_f64", 3, &[-7_f64, -2.0, -9.0]), Some(vec![-2_f64]));
    let halves = [2.0, -1.0, 0.5].map(f16::from_f32);
    assert_eq!(rows("fast_min_f16", 3, &halves), Some(vec![f16::NEG_ONE]));
    assert_eq!(rows("fast_argmax_f16", 3, &halves), Some(vec![0_u32]));
    let halves = [2.0, -1.0, 0.5].map(bf16::from_f32);
    assert_eq!(rows("fast_max_bf16", 3, &halves), Some(vec![bf16::from_f32(2.0)]));
    assert_eq!(rows("fast_argmin_bf16", 3, &halves), Some(vec![1_u32]));
    assert_eq!(rows("fast_argmin_i64", 3, &[i64::MAX; 3]), Some(vec![0_u32]));
    assert_eq!(rows("fast_argmax_u8", 3, &[0_u8; 3]), Some(vec![0_u32]));
}

#[test]
fn nan_is_dropped_by_wide_types_and_kept_by_halves() {
    let singles = [1_f32, f32::NAN, 3.0];
    assert_eq!(rows("fast_max_f32", 3, &singles), Some(vec![3_f32]));
    assert_eq!(rows("fast_min_f64", 3, &[2_f64, f64::NAN, 3.0]), Some(vec![2_f64]));
    let max: Vec<f16> = rows("fast_max_f16", 3, &singles.map(f16::from_f32)).unwrap();
    let min: Vec<bf16> = rows("fast_min_bf16", 3, &singles.map(bf16::from_f32)).unwrap();
    assert!(max[0].is_nan() && min[0].is_nan());
    // A thread that starts with a NaN keeps it; here thread 0 does.
    assert_eq!(rows("fast_argmax_f32", 3, &[f32::NAN, 1.0, 2.0]), Some(vec![0_u32]));
    // Thread 1 has the NaN and loses to thread 0 whatever that has.
    assert_eq!(rows("fast_argmax_f32", 3, &[1.0, f32::NAN, 0.5]), Some(vec![0_u32]));
}

#[test]
fn equal_elements_are_chosen_in_the_order_of_the_tree() {
    // The CPU gives 1.
    assert_eq!(rows("fast_argmax_f32", 4, &[1_f32, 3.0, 3.0, 1.0]), Some(vec![2_u32]));
    assert_eq!(rows("fast_argmin_u32", 4, &[9_u32, 2, 2, 9]), Some(vec![2_u32]));
    // Threads 1 to 7 read with their bits reversed: 4, 2, 6, 1, 5, 3, 7. Thread 4 comes first.
    assert_eq!(rows("fast_argmax_u8", 8, &[0_u8, 1, 1, 1, 1, 1, 1, 1]), Some(vec![4_u32]));
    assert_eq!(rows("fast_argmax_u8", 8, &[0_u8, 1, 1, 1, 0, 1, 1, 1]), Some(vec![2_u32]));
    // A thread with two equal elements keeps the first.
    let mut long = vec![0_i64; 2048];
    (long[1025], long[1]) = (5, 5);
    assert_eq!(rows("fast_argmax_i64", 2048, &long), Some(vec![1_u32]));
    assert_eq!(rows("fast_argmax_i64", 1024, &long), Some(vec![1_u32, 1]));
}

#[test]
fn few_elements_are_summed_in_order() {
    let small = |name: &str,
                 outputs: usize,
                 each: usize,
                 info: &[i64],
                 from: u64,
                 to: u64,
                 device: &mut TestDevice| {
        let rank = info.len() / 2;
        let info = device.upload(info);
        device.launch(name, &arguments![outputs, each, rank, info, from, to]);
    };
    let mut device = TestDevice::new();
    let to = device.allocate(64);
    let from = device.upload(&[1_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    small("fast_sum_small_f32", 2, 3, &[2, 3, 3, 1], from, to, &mut device);
    assert_eq!(device.download(to, 2), Some(vec![6_f32, 15.0]));
    small("fast_sum_small_f32", 3, 2, &[3, 2, 1, 3], from, to, &mut device);
    assert_eq!(device.download(to, 3), Some(vec![5_f32, 7.0, 9.0]));
    // Without elements, the sum is zero.
    small("fast_sum_small_f32", 3, 0, &[3, 0, 0, 1], from, to, &mut device);
    assert_eq!(device.download(to, 3), Some(vec![0_f32; 3]));
    // 2048 + 1 is 2048 in f16, but the sum is made in f32.
    let from = device.upload(&[2048.0, 1.0, 1.0].map(f16::from_f32));
    small("fast_sum_small_f16", 1, 3, &[1, 3, 3, 1], from, to, &mut device);
    assert_eq!(device.download(to, 1), Some(vec![f16::from_f32(2050.0)]));
    let from = device.upload(&[256.0, 1.0, 1.0].map(bf16::from_f32));
    small("fast_sum_small_bf16", 1, 3, &[1, 3, 3, 1], from, to, &mut device);
    assert_eq!(device.download(to, 1), Some(vec![bf16::from_f32(258.0)]));
    let from = device.upload(&[200_u8, 100]);
    small("fast_sum_small_u8", 1, 2, &[2, 1], from, to, &mut device);
    assert_eq!(device.download(to, 1), Some(vec![44_u8]));
    let from = device.upload(&[-2_i64, 1]);
    small("fast_sum_small_i64", 1, 2, &[2, 1], from, to, &mut device);
    assert_eq!(device.download(to, 1), Some(vec![-1_i64]));
}

#[test]
fn a_reduction_of_unknown_elements_is_unknown() {
    let mut device = TestDevice::new();
    let info = device.upload(&[2_i64, 2, 2, 1]);
    let from = device.allocate(16);
    device.launch("fill_f32", &arguments![from, 1_f32, 3_usize]);
    let to = device.upload(&[5_f32; 3]);
    for name in ["fast_sum_f32", "fast_max_f32", "fast_argmin_f32", "fast_sum_small_f32"] {
        let first = if name.ends_with("small_f32") { 2_usize } else { 4 };
        device.launch_blocks(name, 2, 64, &arguments![first, 2_usize, 2_usize, info, from, to]);
        assert_eq!(device.download::<f32>(to, 1), None, "{name}");
        assert_eq!(device.download(to + 8, 1), Some(vec![5_f32]), "{name}");
    }
}
