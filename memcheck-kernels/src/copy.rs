//! Copies of strided tensors.

use super::unary::map;
use super::{ELEMENT, Known, Launch, Unknown};

/// `usize n, usize num_dims, info*, T* in, T* out`
pub(super) fn strided(launch: &mut Launch<'_>) -> Known {
    match launch.kind.width() {
        1 => map(launch, [3, 4], ELEMENT, |x: u8| x),
        2 => map(launch, [3, 4], ELEMENT, |x: i16| x),
        4 => map(launch, [3, 4], ELEMENT, |x: u32| x),
        8 => map(launch, [3, 4], ELEMENT, |x: i64| x),
        _ => Err(Unknown),
    }
}

/// `T* src, T* dst, u32 rows, u32 columns, u32 src_stride, u32 dst_stride`
///
/// Copies what is known of each row.
pub(super) fn rows(launch: &mut Launch<'_>) -> Known {
    let (from, to) = (launch.long(0), launch.long(1));
    let [rows, columns, from_stride, to_stride] =
        [2, 3, 4, 5].map(|number| u64::from(launch.value::<u32>(number)));
    let width = launch.kind.width();
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    let all = rows.saturating_mul(columns);
    let gapless = rows == 1 || (from_stride == columns && to_stride == columns);
    let (rows, columns) = if gapless { (1, all) } else { (rows, columns) };
    // A row costs a search for its blocks, however short it is.
    let operations = if gapless { 0 } else { rows.saturating_mul(ELEMENT).saturating_add(all) };
    let extent = (rows - 1).saturating_mul(to_stride).saturating_add(columns);
    // No row is beyond the end of the address space.
    let of_source = (rows - 1).saturating_mul(from_stride).saturating_add(columns);
    for (start, elements) in [(from, of_source), (to, extent)] {
        start.checked_add(elements.checked_mul(width).ok_or(Unknown)?).ok_or(Unknown)?;
    }
    if !launch.memory.values_mut().charge(operations) {
        launch.memory.overwritten(to, extent.saturating_mul(width));
        return Ok(());
    }
    for row in 0..rows {
        let (from, to) = (from + row * from_stride * width, to + row * to_stride * width);
        launch.memory.copy_bytes(to, from, columns * width);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::harness::{TestDevice, arguments};

    use half::f16;

    #[test]
    fn a_strided_tensor_becomes_contiguous() {
        let mut device = TestDevice::new();
        let from = device.upload(&[1_i64, 2, 3, 4, 5, 6]);
        let to = device.allocate(48);
        let info = device.upload(&[3_i64, 2, 1, 3]);
        device.launch("ucopy_i64", &arguments![6_usize, 2_usize, info, from, to]);
        assert_eq!(device.download(to, 6), Some(vec![1_i64, 4, 2, 5, 3, 6]));
        let halves = [f16::NAN, f16::ONE];
        let from = device.upload(&halves);
        device.launch("ucopy_f16", &arguments![2_usize, 0_usize, 0_u64, from, to]);
        let copied: Vec<f16> = device.download(to, 2).unwrap();
        assert!(copied[0].is_nan() && copied[1] == f16::ONE);
    }

    #[test]
    fn rows_are_copied_between_pitches_and_the_gaps_stay() {
        let mut device = TestDevice::new();
        let from = device.upload(&[1_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let to = device.upload(&[0_f32; 8]);
        device.launch("copy2d_f32", &arguments![from, to + 4, 2_u32, 2_u32, 3_u32, 4_u32]);
        assert_eq!(device.download(to, 8), Some(vec![0_f32, 1.0, 2.0, 0.0, 0.0, 4.0, 5.0, 0.0]));
        device.launch("copy2d_f32", &arguments![from, to, 2_u32, 3_u32, 3_u32, 3_u32]);
        assert_eq!(device.download(to, 6), Some(vec![1_f32, 2.0, 3.0, 4.0, 5.0, 6.0]));
        device.launch("copy2d_f32", &arguments![from, to, 0_u32, 3_u32, 3_u32, 3_u32]);
    }

    #[test]
    fn only_unknown_rows_become_unknown() {
        let mut device = TestDevice::new();
        let from = device.allocate(16);
        device.launch("fill_f32", &arguments![from, 3_f32, 2_usize]);
        let to = device.upload(&[0_f32; 6]);
        device.launch("copy2d_f32", &arguments![from, to, 2_u32, 2_u32, 2_u32, 3_u32]);
        assert_eq!(device.download(to, 3), Some(vec![3_f32, 3.0, 0.0]));
        assert_eq!(device.download::<f32>(to + 12, 1), None);
        assert_eq!(device.download(to + 20, 1), Some(vec![0_f32]));
    }

    #[test]
    fn a_copy_beyond_a_block_makes_the_target_unknown() {
        let mut device = TestDevice::new();
        let (from, to) = (device.upload(&[1_f32; 4]), device.upload(&[0_f32; 8]));
        device.launch("copy2d_f32", &arguments![from, to, 1_u32, 8_u32, 8_u32, 8_u32]);
        assert_eq!(device.download::<f32>(to, 1), None);
        device.launch("copy2d_f32", &arguments![to, from, 4_u32, u32::MAX, 7_u32, 9_u32]);
    }
}
