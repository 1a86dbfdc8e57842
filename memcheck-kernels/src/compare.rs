//! Comparisons of two elements. The result is a `u8`, 1 or 0.

use super::binary::zip;
use super::{Known, Launch, with_element};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// `usize n, usize num_dims, info* (dims, strides of lhs, strides of rhs), T* lhs, T* rhs, u8* out`
pub(super) fn run(launch: &mut Launch<'_>, comparison: Comparison) -> Known {
    with_element!(launch.kind, T => zip(launch, |x: T, y: T| u8::from(match comparison {
        Comparison::Eq => x == y,
        Comparison::Ne => x != y,
        Comparison::Lt => x < y,
        Comparison::Le => x <= y,
        Comparison::Gt => x > y,
        Comparison::Ge => x >= y,
    })))
}

#[cfg(test)]
mod tests {
    use crate::element::Element;
    use crate::harness::{TestDevice, arguments};

    use half::{bf16, f16};

    const NAMES: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

    fn all<T: Element>(suffix: &str, lhs: T, rhs: T) -> [u8; 6] {
        NAMES.map(|name| {
            let mut device = TestDevice::new();
            let (lhs, rhs) = (device.upload(&[lhs]), device.upload(&[rhs]));
            let to = device.allocate(1);
            let name = format!("{name}_{suffix}");
            device.launch(&name, &arguments![1_usize, 0_usize, 0_u64, lhs, rhs, to]);
            device.download(to, 1).expect("the result is known")[0]
        })
    }

    #[test]
    fn comparisons_give_one_byte_for_each_element() {
        let (less, equal) = ([0, 1, 1, 1, 0, 0], [1, 0, 0, 1, 0, 1]);
        assert_eq!(all("u8", 1_u8, 2), less);
        assert_eq!(all("u32", u32::MAX, u32::MAX), equal);
        assert_eq!(all("i64", -1_i64, 2), less);
        assert_eq!(all("f32", 1_f32, 1.0), equal);
        assert_eq!(all("f64", -0_f64, 0.0), equal);
        assert_eq!(all("f16", f16::NEG_ONE, f16::ONE), less);
        assert_eq!(all("bf16", bf16::ONE, bf16::ONE), equal);
        assert_eq!(all("f32", f32::NAN, f32::NAN), [0, 1, 0, 0, 0, 0]);
    }
}
