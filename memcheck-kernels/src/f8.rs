//! The type of 8 bits `f8_e4m3`. candle's kernels compute with it in f32 and round each result once.
//! A number beyond its range becomes the largest one.

use float8::F8E4M3;

use super::element::{Element, Number};
use super::kinds::Kind;

/// An element of 8 bits: a sign, 4 bits of exponent and 3 bits of mantissa.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub(crate) struct F8(F8E4M3);

impl F8 {
    pub(crate) fn from_f32(value: f32) -> Self {
        Self(F8E4M3::from_f32(value))
    }

    pub(crate) fn to_f32(self) -> f32 {
        self.0.to_f32()
    }
}

macro_rules! in_f32 {
    ($($name:ident($x:ident, $y:ident) $result:expr;)*) => {$(
        fn $name(self, other: Self) -> Self {
            let ($x, $y) = (self.to_f32(), other.to_f32());
            Self::from_f32($result)
        }
    )*};
}

impl Element for F8 {
    const WIDTH: usize = 1;
    const KIND: Kind = Kind::F8;

    fn load(bytes: &[u8]) -> Self {
        Self(F8E4M3::from_bits(bytes[0]))
    }

    fn store_at(self, to: &mut [u8]) {
        to.copy_from_slice(&[self.0.to_bits()]);
    }

    /// The kernels convert through f32.
    fn from_number(number: Number) -> Self {
        match number {
            Number::Integer(value) => Self::from_f32(value as f32),
            Number::Real(value) => Self::from_f32(value as f32),
        }
    }

    fn number(self) -> Number {
        Number::Real(self.0.to_f64())
    }

    in_f32! {
        plus(x, y) x + y;
        minus(x, y) x - y;
        times(x, y) x * y;
        over(x, y) x / y;
        larger(x, y) x.max(y);
        smaller(x, y) x.min(y);
    }

    fn times_plus(self, factor: Self, summand: Self) -> Self {
        Self::from_f32(self.to_f32() * factor.to_f32() + summand.to_f32())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{TestDevice, arguments};

    fn f8(values: &[f32]) -> Vec<F8> {
        values.iter().map(|&value| F8::from_f32(value)).collect()
    }

    #[test]
    fn a_result_is_rounded_once_and_stays_in_range() {
        let mut device = TestDevice::new();
        let (x, y) =
            (device.upload(&f8(&[1.0, 448.0, -3.5])), device.upload(&f8(&[0.0625, 448.0, 2.0])));
        let to = device.allocate(3);
        let mut run = |name: &str, arguments: &[[u8; 8]]| {
            device.launch(name, arguments);
            let result: Vec<F8> = device.download(to, 3).expect("the result is known");
            result.into_iter().map(F8::to_f32).collect::<Vec<_>>()
        };
        let pair = arguments![3_usize, 0_usize, 0_u64, x, y, to];
        assert_eq!(run("badd_f8_e4m3", &pair), [1.0, 448.0, -1.5]);
        assert_eq!(run("bmul_f8_e4m3", &pair), [0.0625, 448.0, -7.0]);
        assert_eq!(run("bmaximum_f8_e4m3", &pair), [1.0, 448.0, 2.0]);
        let one = arguments![3_usize, 0_usize, 0_u64, x, to];
        assert_eq!(run("uneg_fp8_e4m3", &one), [-1.0, -448.0, 3.5]);
        assert_eq!(run("usqr_fp8_e4m3", &one), [1.0, 448.0, 12.0]);
        // 1 * 1.0625 + 0.0625 is 1.125 in f32; in two steps the product would become 1.
        let [factor, summand] = [1.0625, 0.0625].map(|x| F8::from_f32(x).0.to_bits());
        let affine = arguments![3_usize, 0_usize, 0_u64, x, to, factor, summand];
        assert_eq!(
            run("affine_f8_e4m3", &affine)[0],
            F8::from_f32(F8::from_f32(1.0625).to_f32() + 0.0625).to_f32()
        );
    }

    #[test]
    fn conversions_and_ids_of_every_type_exist() {
        let mut device = TestDevice::new();
        let (x, to) = (device.upload(&f8(&[1.5, -2.0, 7.0])), device.allocate(24));
        let cast = |from: u64, to: u64| arguments![3_usize, 0_usize, 0_u64, from, to];
        device.launch("cast_f8_e4m3_i32", &cast(x, to));
        assert_eq!(device.download(to, 3), Some(vec![1_i32, -2, 7]));
        device.launch("cast_f8_e4m3_bf16", &cast(x, to));
        let halves = [1.5, -2.0, 7.0].map(half::bf16::from_f32).to_vec();
        assert_eq!(device.download(to, 3), Some(halves));
        let doubles = device.upload(&[1.5_f64, 1000.0, 0.0]);
        device.launch("cast_f64_f8_e4m3", &cast(doubles, to));
        assert_eq!(device.download(to, 3), Some(f8(&[1.5, 448.0, 0.0])));
        let ids = device.upload(&[2_i16, i16::MAX, 0]);
        let select =
            arguments![3_usize, 0_usize, 0_u64, ids, x, to, 1_usize, 3_usize, 3_usize, 1_usize];
        device.launch("is_i16_f8_e4m3", &select);
        assert_eq!(device.download(to, 3), Some(f8(&[7.0, 0.0, 1.5])));
        let choice = device.upload(&[0_i32, 1, 1]);
        let info = device.upload(&[3_i64, 1, 1, 1]);
        let target = device.upload(&f8(&[9.0; 3]));
        let choose = arguments![3_usize, 1_usize, info, choice, x, target, to];
        device.launch("where_i32_fp8_e4m3", &choose);
        assert_eq!(device.download(to, 3), Some(f8(&[9.0, -2.0, 7.0])));
    }
}
