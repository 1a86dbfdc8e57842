use super::*;
use crate::harness::{TestDevice, arguments};

use half::f16;

/// Selects from a contiguous tensor with `left` x `dim` x `right` elements.
fn select_of<I: Element, T: Element>(
    name: &str,
    [left, dim, right]: [usize; 3],
    elements: &[T],
    ids: &[I],
) -> Option<Vec<T>> {
    let mut device = TestDevice::new();
    let count = left * ids.len() * right;
    let (from, to) = (device.upload(elements), device.allocate(count * T::WIDTH));
    let info = device.upload(&[ids.len() as i64, 1]);
    let at = device.upload(ids);
    let all = arguments![count, 1_usize, info, at, from, to, left, dim, ids.len(), right];
    device.launch(name, &all);
    device.download(to, count)
}

#[test]
fn rows_and_columns_are_selected_by_ids_of_every_type() {
    let matrix = [1_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let expected = Some(vec![5_f32, 6.0, 1.0, 2.0, 5.0, 6.0]);
    assert_eq!(select_of("is_u32_f32", [1, 3, 2], &matrix, &[2_u32, 0, 2]), expected);
    assert_eq!(select_of("is_u8_f32", [1, 3, 2], &matrix, &[2_u8, 0, 2]), expected);
    assert_eq!(select_of("is_i64_f32", [1, 3, 2], &matrix, &[2_i64, 0, 2]), expected);
    let columns = select_of("is_u32_i64", [2, 3, 1], &[1_i64, 2, 3, 4, 5, 6], &[2_u32, 1]);
    assert_eq!(columns, Some(vec![3_i64, 2, 6, 5]));
    let halves = [1.0, 2.0].map(f16::from_f32);
    assert_eq!(select_of("is_u32_f16", [1, 2, 1], &halves, &[1_u32]), Some(vec![halves[1]]));
}

#[test]
fn no_ids_select_nothing() {
    let mut device = TestDevice::new();
    let (info, at) = (device.upload(&[0_i64, 1]), device.upload::<u32>(&[]));
    let (from, to) = (device.upload(&[1_f32]), device.upload(&[9_f32]));
    let all = arguments![0_usize, 1_usize, info, at, from, to, 1_usize, 1_usize, 0_usize, 1_usize];
    device.launch("is_u32_f32", &all);
    let all = arguments![0_usize, at, from, to, 1_usize, 1_usize, 0_usize, 1_usize];
    device.launch("gather_u32_f32", &all);
    assert_eq!(device.download(to, 1), Some(vec![9_f32]));
}

#[test]
fn the_largest_id_selects_zeros() {
    let matrix = [1_f32, 2.0, 3.0, 4.0];
    let expected = Some(vec![0_f32, 0.0, 3.0, 4.0]);
    assert_eq!(select_of("is_u32_f32", [1, 2, 2], &matrix, &[u32::MAX, 1]), expected);
    assert_eq!(select_of("is_u8_f32", [1, 2, 2], &matrix, &[u8::MAX, 1]), expected);
    assert_eq!(select_of("is_i64_f32", [1, 2, 2], &matrix, &[i64::MAX, 1]), expected);
}

/// Launches a kernel and returns its failed assert. Its ids select from a dim of 2.
#[track_caller]
fn failed<I: Element>(name: &str, ids: &[I], is_large: bool) -> Option<String> {
    let mut device = TestDevice::new();
    let width = if is_large { 1 << 20 } else { 1_usize };
    let count = ids.len() * width;
    let (from, to) = (device.allocate(4 * 2 * width), device.allocate(4 * count.max(2 * width)));
    let (at, info) = (device.upload(ids), device.upload(&[ids.len() as i64, 1]));
    let (n, dim) = (ids.len(), 2_usize);
    match name.split_once('_').unwrap().0 {
        "is" => device
            .launch(name, &arguments![count, 1_usize, info, at, from, to, 1_usize, dim, n, width]),
        "gather" => device.launch(name, &arguments![count, at, from, to, 1_usize, dim, n, width]),
        "ia" => device.launch(name, &arguments![at, n, from, to, 1_usize, n, dim, width]),
        _ => device.launch(name, &arguments![at, from, to, 1_usize, n, dim, width]),
    }
    assert!(!device.is_known(to));
    device.memory.failed_assert.map(|failed| failed.to_string())
}

#[test]
fn an_id_outside_of_the_dim_fails_the_assert_of_the_kernel() {
    let text = |kernel: &str, id: i64| {
        Some(format!("the kernel {kernel} got the id {id}, which is not in 0..2"))
    };
    for kernel in ["is_u32_f32", "gather_u32_f16", "ia_u32_f64", "s_u32_u8", "sa_u32_bf16"] {
        assert_eq!(failed(kernel, &[0_u32, 2], false), text(kernel, 2));
        assert_eq!(failed(kernel, &[0_u32, u32::MAX, 1], false), None, "{kernel}");
    }
    assert_eq!(failed("is_i64_f32", &[-1_i64], false), text("is_i64_f32", -1));
    assert_eq!(failed("is_u8_f32", &[254_u8], false), text("is_u8_f32", 254));
    // The values of this launch exceed the limit of operations.
    assert_eq!(failed("is_u32_f32", &[7_u32], true), text("is_u32_f32", 7));
}

/// These two kernels write outside of the dim. Neither do they know a largest id.
#[test]
fn kernels_that_add_in_f8_have_no_assert_but_an_unknown_result() {
    for kernel in ["ia_u32_f8_e4m3", "sa_u32_f8_e4m3"] {
        assert_eq!(failed(kernel, &[2_u32], false), None);
        assert_eq!(failed(kernel, &[u32::MAX], false), None);
    }
    assert!(failed("is_u32_f8_e4m3", &[2_u32], false).is_some());
}

/// The device uses the strides of the ids for the source. The CPU would give 30, 10, 20.
#[test]
fn ids_that_are_not_contiguous_restride_the_source() {
    let mut device = TestDevice::new();
    let from = device.upload(&[10_f32, 20.0, 30.0, 40.0, 50.0, 60.0]);
    // Every second of these ids is meant.
    let at = device.upload(&[2_u32, 0, 0, 0, 1, 0]);
    let info = device.upload(&[3_i64, 2]);
    let to = device.allocate(12);
    device.launch(
        "is_u32_f32",
        &arguments![3_usize, 1_usize, info, at, from, to, 1_usize, 3_usize, 3_usize, 1_usize],
    );
    // The ids 2, 0, 0 are read; the source index 2 becomes 2 * 2.
    assert_eq!(device.download(to, 3), Some(vec![50_f32, 10.0, 10.0]));
}

/// Of a table of which some rows are unknown, the known rows can be selected.
#[test]
fn only_the_rows_that_are_selected_must_be_known() {
    let mut device = TestDevice::new();
    let from = device.allocate(16);
    device.launch("fill_f32", &arguments![from + 8, 3_f32, 2_usize]);
    let to = device.upload(&[5_f32; 3]);
    let info = device.upload(&[1_i64, 1]);
    for (id, expected) in [(1_u32, Some(vec![3_f32, 3.0])), (0, None)] {
        let at = device.upload(&[id]);
        let all =
            arguments![2_usize, 1_usize, info, at, from, to, 1_usize, 2_usize, 1_usize, 2_usize];
        device.launch("is_u32_f32", &all);
        assert_eq!(device.download(to, 2), expected);
        assert_eq!(device.download(to + 8, 1), Some(vec![5_f32]));
    }
}

fn gather_of<I: Element>(
    name: &str,
    [left, dim, of_ids, right]: [usize; 4],
    elements: &[f64],
    ids: &[I],
) -> Option<Vec<f64>> {
    let mut device = TestDevice::new();
    let (from, at, to) =
        (device.upload(elements), device.upload(ids), device.allocate(ids.len() * 8));
    device.launch(name, &arguments![ids.len(), at, from, to, left, dim, of_ids, right]);
    device.download(to, ids.len())
}

#[test]
fn each_element_of_a_gather_has_its_own_id() {
    let matrix = [1_f64, 2.0, 3.0, 4.0, 5.0, 6.0];
    // Along the last dim of 2 x 3, then along the first dim of 3 x 2.
    let result = gather_of("gather_u32_f64", [2, 3, 2, 1], &matrix, &[2_u32, 0, 1, 1]);
    assert_eq!(result, Some(vec![3_f64, 1.0, 5.0, 5.0]));
    let result = gather_of("gather_i64_f64", [1, 3, 2, 2], &matrix, &[2_i64, 0, i64::MAX, 1]);
    assert_eq!(result, Some(vec![5_f64, 2.0, 0.0, 4.0]));
    let result = gather_of("gather_u8_f64", [1, 3, 1, 2], &matrix, &[255_u8, 2]);
    assert_eq!(result, Some(vec![0_f64, 6.0]));
    assert_eq!(gather_of("gather_u8_f64", [1, 3, 1, 2], &matrix, &[0_u8, 3]), None);
}

#[test]
fn an_index_add_adds_rows_in_order() {
    let mut device = TestDevice::new();
    let to = device.upload(&[1_f32, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let from = device.upload(&[10_f32, 20.0, 30.0, 40.0, 50.0, 60.0]);
    let at = device.upload(&[2_u32, u32::MAX, 2]);
    let all = arguments![at, 3_usize, from, to, 1_usize, 3_usize, 3_usize, 2_usize];
    device.launch("ia_u32_f32", &all);
    assert_eq!(device.download(to, 6), Some(vec![1_f32, 1.0, 1.0, 1.0, 61.0, 81.0]));
    // With two rows on the left, of dim 2.
    let to = device.upload(&[0_i64; 4]);
    let from = device.upload(&[1_i64, 2, 3, 4, 5, 6]);
    let at = device.upload(&[1_i64, 0, 1]);
    let all = arguments![at, 3_usize, from, to, 2_usize, 3_usize, 2_usize, 1_usize];
    device.launch("ia_i64_i64", &all);
    assert_eq!(device.download(to, 4), Some(vec![2_i64, 4, 5, 10]));
}

#[test]
fn each_addition_of_halves_is_rounded() {
    let mut device = TestDevice::new();
    let to = device.upload(&[f16::from_f32(2048.0)]);
    let from = device.upload(&[f16::ONE; 2]);
    let at = device.upload(&[0_u8, 0]);
    let all = arguments![at, 2_usize, from, to, 1_usize, 2_usize, 1_usize, 1_usize];
    device.launch("ia_u8_f16", &all);
    assert_eq!(device.download(to, 1), Some(vec![f16::from_f32(2048.0)]));
    let all = arguments![at, from, to, 1_usize, 2_usize, 1_usize, 1_usize];
    device.launch("sa_u8_f16", &all);
    assert_eq!(device.download(to, 1), Some(vec![f16::from_f32(2048.0)]));
}

#[test]
fn a_scatter_writes_each_element_at_its_id_and_the_last_one_stays() {
    let mut device = TestDevice::new();
    let from = device.upload(&[1_f32, 2.0, 3.0, 4.0]);
    // Along the last dim of 2 x 3, of which two elements are given.
    for (name, expected) in [
        ("s_u32_f32", [9_f32, 9.0, 2.0, 4.0, 9.0, 9.0]),
        ("sa_u32_f32", [9_f32, 9.0, 12.0, 16.0, 9.0, 9.0]),
    ] {
        let to = device.upload(&[9_f32; 6]);
        let at = device.upload(&[2_u32, 2, 0, 0]);
        device.launch(name, &arguments![at, from, to, 2_usize, 2_usize, 3_usize, 1_usize]);
        assert_eq!(device.download(to, 6), Some(expected.to_vec()), "{name}");
    }
    // Along the first dim of 2 x 2, at an offset; the largest id writes nothing.
    let to = device.upload(&[9_f32; 5]);
    let at = device.upload(&[1_i64, 0, 0, i64::MAX]);
    let all = arguments![at, from, to + 4, 1_usize, 2_usize, 2_usize, 2_usize];
    device.launch("s_i64_f32", &all);
    assert_eq!(device.download(to, 5), Some(vec![9_f32, 3.0, 2.0, 1.0, 9.0]));
}

#[test]
fn a_scatter_without_elements_changes_nothing() {
    let mut device = TestDevice::new();
    let (at, from) = (device.upload::<u32>(&[]), device.upload::<f32>(&[]));
    let to = device.upload(&[9_f32; 2]);
    device.launch("s_u32_f32", &arguments![at, from, to, 1_usize, 0_usize, 2_usize, 1_usize]);
    device.launch("sa_u32_f32", &arguments![at, from, to, 0_usize, 1_usize, 2_usize, 1_usize]);
    device.launch(
        "ia_u32_f32",
        &arguments![at, 0_usize, from, to, 1_usize, 0_usize, 2_usize, 0_usize],
    );
    assert_eq!(device.download(to, 2), Some(vec![9_f32; 2]));
}

#[test]
fn what_a_scatter_does_not_write_keeps_its_state() {
    let mut device = TestDevice::new();
    let (from, at) = (device.upload(&[1_f32, 2.0]), device.upload(&[1_u32, 2]));
    // The target is unknown: a scatter makes two elements known, a sum does not.
    let to = device.allocate(16);
    device.launch("sa_u32_f32", &arguments![at, from, to, 1_usize, 2_usize, 4_usize, 1_usize]);
    assert_eq!(device.download::<f32>(to + 4, 1), None);
    device.launch("s_u32_f32", &arguments![at, from, to, 1_usize, 2_usize, 4_usize, 1_usize]);
    assert_eq!(device.download(to + 4, 2), Some(vec![1_f32, 2.0]));
    assert_eq!(device.download::<f32>(to, 1), None);
    assert_eq!(device.download::<f32>(to + 12, 1), None);
    // With unknown ids, each element of the target can have changed, and none beyond it.
    let (unknown, to) = (device.allocate(8), device.upload(&[9_f32; 5]));
    device.launch("s_u32_f32", &arguments![unknown, from, to, 1_usize, 2_usize, 4_usize, 1_usize]);
    assert_eq!(device.download::<f32>(to, 1), None);
    assert_eq!(device.download(to + 16, 1), Some(vec![9_f32]));
}
