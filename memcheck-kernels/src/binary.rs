//! Arithmetic on two elements.

use super::element::Element;
use super::work::ARITHMETIC;
use super::{Known, Launch, with_element};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Maximum,
    Minimum,
}

/// `usize n, usize num_dims, info* (dims, strides of lhs, strides of rhs), T* lhs, T* rhs, T* out`
pub(super) fn run(launch: &mut Launch<'_>, op: Arithmetic) -> Known {
    with_element!(launch.kind, T => zip(launch, |x: T, y: T| match op {
        Arithmetic::Add => x.plus(y),
        Arithmetic::Sub => x.minus(y),
        Arithmetic::Mul => x.times(y),
        Arithmetic::Div => x.over(y),
        Arithmetic::Maximum => x.larger(y),
        Arithmetic::Minimum => x.smaller(y),
    }))
}

/// Computes each pair of elements of two strided inputs.
pub(super) fn zip<T: Element, O: Element>(
    launch: &mut Launch<'_>,
    function: impl Fn(T, T) -> O,
) -> Known {
    let (count, rank, info) = (launch.long(0), launch.long(1), launch.long(2));
    let (lhs, rhs, output) = (launch.long(3), launch.long(4), launch.long(5));
    launch.produce(output, count, count.saturating_mul(ARITHMETIC.of(T::KIND)), |source| {
        let [of_lhs, of_rhs] = source.layouts(count, rank, info)?;
        let (lhs, rhs) = (source.in_order::<T>(lhs, &of_lhs)?, source.in_order::<T>(rhs, &of_rhs)?);
        Ok(lhs.iter().zip(rhs.iter()).map(|(&x, &y)| function(x, y)).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{TestDevice, arguments};

    use half::{bf16, f16};

    const OPS: [&str; 6] = ["badd", "bsub", "bmul", "bdiv", "bmaximum", "bminimum"];

    /// The results of the six operations.
    fn all<T: Element>(suffix: &str, lhs: T, rhs: T) -> Vec<T> {
        let one = |op: &&str| {
            let mut device = TestDevice::new();
            let (lhs, rhs) = (device.upload(&[lhs]), device.upload(&[rhs]));
            let to = device.allocate(T::WIDTH);
            let name = format!("{op}_{suffix}");
            device.launch(&name, &arguments![1_usize, 0_usize, 0_u64, lhs, rhs, to]);
            device.download(to, 1).expect("the result is known")[0]
        };
        OPS.iter().map(one).collect()
    }

    #[test]
    fn every_type_computes_by_its_own_rules() {
        assert_eq!(all("u8", 200_u8, 100), [44, 100, 32, 2, 200, 100]);
        assert_eq!(all("u32", 3_u32, 5), [8, u32::MAX - 1, 15, 0, 5, 3]);
        assert_eq!(all("i64", -7_i64, 2), [-5, -9, -14, -3, 2, -7]);
        assert_eq!(all("f32", 1.5_f32, -0.5), [1.0, 2.0, -0.75, -3.0, 1.5, -0.5]);
        assert_eq!(all("f64", 1.5_f64, -0.5), [1.0, 2.0, -0.75, -3.0, 1.5, -0.5]);
        let halves = [1.0, 2.0, -0.75, -3.0, 1.5, -0.5];
        assert_eq!(all("f16", f16::from_f32(1.5), f16::from_f32(-0.5)), halves.map(f16::from_f32));
        let halves = halves.map(bf16::from_f32);
        assert_eq!(all("bf16", bf16::from_f32(1.5), bf16::from_f32(-0.5)), halves);
        // 2048 + 1 has no f16 of its own.
        assert_eq!(all("f16", f16::from_f32(2048.0), f16::ONE)[0], f16::from_f32(2048.0));
    }

    #[test]
    fn each_input_has_its_own_strides() {
        let mut device = TestDevice::new();
        let lhs = device.upload(&[1_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let rhs = device.upload(&[10_f32, 20.0]);
        let to = device.allocate(24);
        // lhs is transposed, and rhs is broadcast along the first dim.
        let info = device.upload(&[3_i64, 2, 1, 3, 0, 1]);
        device.launch("badd_f32", &arguments![6_usize, 2_usize, info, lhs, rhs, to]);
        let expected = vec![11_f32, 24.0, 12.0, 25.0, 13.0, 26.0];
        assert_eq!(device.download(to, 6), Some(expected));
    }

    #[test]
    fn the_result_can_replace_an_input() {
        let mut device = TestDevice::new();
        let (lhs, rhs) = (device.upload(&[1_f32, 2.0]), device.upload(&[10_f32, 20.0]));
        device.launch("bmul_f32", &arguments![2_usize, 0_usize, 0_u64, lhs, rhs, lhs]);
        assert_eq!(device.download(lhs, 2), Some(vec![10_f32, 40.0]));
    }

    #[test]
    fn one_unknown_input_makes_the_result_unknown() {
        let mut device = TestDevice::new();
        let (known, unknown) = (device.upload(&[1_f32; 2]), device.allocate(8));
        for (lhs, rhs) in [(known, unknown), (unknown, known)] {
            let to = device.upload(&[1_f32; 2]);
            device.launch("bmul_f32", &arguments![2_usize, 0_usize, 0_u64, lhs, rhs, to]);
            assert_eq!(device.download::<f32>(to, 1), None);
        }
    }
}
