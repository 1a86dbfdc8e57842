//! One value for many elements.

use super::element::Element;
use super::{ELEMENT, Known, Launch, Unknown, with_any};

/// `usize n, usize num_dims, info*, T value, T* out`, which writes through the strides of `out`.
pub(super) fn set(launch: &mut Launch<'_>) -> Known {
    let (count, rank, info) = (launch.long(0), launch.long(1), launch.long(2));
    with_any!(launch.kind, T => {
        let (value, output): (T, u64) = (launch.value(3), launch.long(4));
        // Which elements are written is unknown if the layout is.
        let [layout] = launch.source().layouts(count, rank, info)?;
        if layout.is_contiguous() {
            return repeat(launch, output, count, value);
        }
        let length = layout.extent().checked_mul(T::WIDTH as u64).ok_or(Unknown)?;
        output.checked_add(length).ok_or(Unknown)?;
        let mut bytes = Vec::new();
        value.store(&mut bytes);
        if !launch.memory.values_mut().charge(count.saturating_mul(2 * ELEMENT)) {
            launch.memory.overwritten(output, length);
            return Ok(());
        }
        layout.rows(|first, stride, length| {
            if stride == 1 {
                let address = output + first * T::WIDTH as u64;
                launch.memory.write_bytes(address, &bytes.repeat(length as usize));
                return true;
            }
            for at in 0..length {
                let address = output + (first + at * stride) * T::WIDTH as u64;
                launch.memory.write_bytes(address, &bytes);
            }
            true
        });
        Ok(())
    })
}

/// `T* out, T value, usize n`
pub(super) fn fill(launch: &mut Launch<'_>) -> Known {
    with_any!(launch.kind, T => {
        let (output, value, count): (u64, T, u64) = (launch.long(0), launch.value(1), launch.long(2));
        repeat(launch, output, count, value)
    })
}

fn repeat<T: Element>(launch: &mut Launch<'_>, output: u64, count: u64, value: T) -> Known {
    let mut bytes = Vec::new();
    value.store(&mut bytes);
    let length = count.saturating_mul(T::WIDTH as u64);
    if count > 0 && bytes.iter().all(|&byte| byte == 0) && launch.memory.zero_bytes(output, length)
    {
        return Ok(());
    }
    launch.produce(output, count, count, |_| Ok(vec![value; count as usize]))
}

#[cfg(test)]
mod tests {
    use crate::harness::{TestDevice, arguments};

    use half::bf16;

    #[test]
    fn a_value_is_written_through_the_strides_of_the_target() {
        let mut device = TestDevice::new();
        let to = device.upload(&[1_f32; 6]);
        device.launch("const_set_f32", &arguments![2_usize, 0_usize, 0_u64, 7_f32, to + 8]);
        assert_eq!(device.download(to, 6), Some(vec![1_f32, 1.0, 7.0, 7.0, 1.0, 1.0]));
        // The second column of a 3 x 2 tensor.
        let info = device.upload(&[3_i64, 1, 2, 1]);
        device.launch("const_set_f32", &arguments![3_usize, 2_usize, info, 9_f32, to + 4]);
        assert_eq!(device.download(to, 6), Some(vec![1_f32, 9.0, 7.0, 9.0, 1.0, 9.0]));
        // The first row.
        let info = device.upload(&[1_i64, 2, 2, 1]);
        device.launch("const_set_f32", &arguments![2_usize, 2_usize, info, 0_f32, to]);
        assert_eq!(device.download(to, 2), Some(vec![0_f32, 0.0]));
    }

    #[test]
    fn every_type_has_a_fill() {
        let mut device = TestDevice::new();
        let to = device.allocate(16);
        device.launch("const_set_u8", &arguments![2_usize, 0_usize, 0_u64, 3_u8, to]);
        assert_eq!(device.download(to, 2), Some(vec![3_u8, 3]));
        device.launch("const_set_i64", &arguments![2_usize, 0_usize, 0_u64, -3_i64, to]);
        assert_eq!(device.download(to, 2), Some(vec![-3_i64, -3]));
        device.launch("const_set_f8_e4m3", &arguments![2_usize, 0_usize, 0_u64, 0x38_u8, to]);
        assert_eq!(device.download(to, 2), Some(vec![0x38_u8, 0x38]));
        device.launch("fill_bf16", &arguments![to, bf16::ONE, 3_usize]);
        assert_eq!(device.download(to, 3), Some(vec![bf16::ONE; 3]));
    }

    #[test]
    fn zeros_need_no_storage_and_have_no_limit() {
        let mut device = TestDevice::new();
        let to = device.allocate(1 << 34);
        device.launch("const_set_f32", &arguments![1_u64 << 32, 0_usize, 0_u64, 0_f32, to]);
        assert_eq!(device.download(to + (1 << 33), 1), Some(vec![0_f32]));
    }
}
