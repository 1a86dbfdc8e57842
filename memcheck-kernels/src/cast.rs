//! Conversions from one element type to another.

use super::element::Element;
use super::{ELEMENT, Kind, Known, Launch, with_element};

/// `usize n, usize num_dims, info*, S* in, D* out`; `from` is S, and the launch has D.
///
/// A real number that is out of an integer's range becomes the nearest integer. On a device that is
/// not determined for `u8`.
pub(super) fn run(launch: &mut Launch<'_>, from: Kind) -> Known {
    let (count, rank, info) = (launch.long(0), launch.long(1), launch.long(2));
    let (input, output) = (launch.long(3), launch.long(4));
    let operations = count.saturating_mul(ELEMENT);
    // First numbers, then elements: a function for each pair of types would take long to compile.
    let numbers = launch.read(operations, |source| {
        let [layout] = source.layouts(count, rank, info)?;
        with_element!(from, S => {
            let elements = source.in_order::<S>(input, &layout)?;
            Ok(elements.iter().map(|&element| element.number()).collect::<Vec<_>>())
        })
    });
    with_element!(launch.kind, D => launch.produce(output, count, operations, |_| {
        Ok(numbers?.into_iter().map(D::from_number).collect())
    }))
}

#[cfg(test)]
mod tests {
    use crate::element::Element;
    use crate::harness::{TestDevice, arguments};

    use half::{bf16, f16};

    fn cast<S: Element, D: Element>(name: &str, input: S) -> D {
        let mut device = TestDevice::new();
        let (from, to) = (device.upload(&[input]), device.allocate(D::WIDTH));
        device.launch(name, &arguments![1_usize, 0_usize, 0_u64, from, to]);
        device.download(to, 1).expect("the result is known")[0]
    }

    #[test]
    fn a_conversion_rounds_once_and_stays_in_range() {
        assert_eq!(cast::<f32, u8>("cast_f32_u8", 3.9), 3);
        assert_eq!(cast::<f32, u32>("cast_f32_u32", -1.0), 0);
        assert_eq!(cast::<f64, i64>("cast_f64_i64", -2.9), -2);
        assert_eq!(cast::<u32, u8>("cast_u32_u8", 258), 2);
        assert_eq!(cast::<i64, u32>("cast_i64_u32", -1), u32::MAX);
        assert_eq!(cast::<i64, f32>("cast_i64_f32", (1 << 24) + 1), 16_777_216.0);
        assert_eq!(cast::<u8, f16>("cast_u8_f16", 255).to_f32(), 255.0);
        assert_eq!(cast::<u32, bf16>("cast_u32_bf16", 257).to_f32(), 256.0);
        assert_eq!(cast::<f32, f16>("cast_f32_f16", 1e9), f16::INFINITY);
        assert_eq!(cast::<f16, bf16>("cast_f16_bf16", f16::from_f32(0.1)).to_f32(), 0.100_097_656);
        assert_eq!(cast::<bf16, u8>("cast_bf16_u8", bf16::from_f32(7.5)), 7);
        assert_eq!(cast::<f64, f32>("cast_f64_f32", 1e-60), 0.0);
    }
}
