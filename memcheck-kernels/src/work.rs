//! The work of kernels in operations, which the limits count.
//!
//! An operation is 16 multiplications of a product of matrices, or what takes as long: about 0.4 ns
//! on a server of 2023. `cargo bench --profile dev -p memcheck-kernels` measures the time of an
//! operation in each kernel. The work of a kernel depends on its arguments only, so that it is the
//! same on every computer.

use super::Kind;

/// An element that is read, changed and written.
pub(crate) const ELEMENT: u64 = 8;
/// A thread of a reduction: its value, and the steps of the tree that joins it with others.
pub(crate) const THREAD: u64 = 4;
/// A comparison of a sort.
pub(crate) const COMPARISON: u64 = 8;
/// An element of an image that is found by its position and multiplied.
pub(crate) const TAP: u64 = 32;
/// A multiplication of two elements that are read one by one.
pub(crate) const SINGLE_PRODUCT: u64 = 10;

/// The work that a type causes: f32 and integers; the types of 16 and 8 bits, whose results are
/// rounded; f64, whose functions have a library of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByType {
    pub(crate) plain: u64,
    pub(crate) rounded: u64,
    pub(crate) double: u64,
}

impl ByType {
    pub(crate) const fn new(plain: u64, rounded: u64, double: u64) -> Self {
        Self { plain, rounded, double }
    }

    pub(crate) fn of(self, kind: Kind) -> u64 {
        match kind {
            Kind::F16 | Kind::Bf16 | Kind::F8 | Kind::Fp8 => self.rounded,
            Kind::F64 => self.double,
            _ => self.plain,
        }
    }
}

/// Arithmetic with an element.
pub(crate) const ARITHMETIC: ByType = ByType::new(ELEMENT, 16, ELEMENT);
/// An exponential, with what a softmax does beside it.
pub(crate) const SOFTMAX: ByType = ByType::new(16, 64, 24);
/// An element of a row that is normalised by its squares.
pub(crate) const RMS_NORM: ByType = ByType::new(8, 32, 8);
/// The same by mean and deviation.
pub(crate) const LAYER_NORM: ByType = ByType::new(12, 40, 12);
/// An element that is rotated.
pub(crate) const ROTATION: ByType = ByType::new(8, 48, 8);
/// A random number between 0 and 1.
pub(crate) const UNIFORM: u64 = 12;
/// A random number of a normal distribution.
pub(crate) const NORMAL: u64 = 48;

/// Multiplications of a product of matrices in one operation. Without the crate for products there
/// is a loop, which is slower.
const MULTIPLICATIONS: u64 = if cfg!(feature = "gemm") { 16 } else { 2 };
/// A product, however small.
const PRODUCT: u64 = 1024;

/// A product of matrices with these dims, the elements that are read and written included. Those of
/// 16 and 8 bits are converted first.
pub(crate) fn of_product([m, n, k]: [u64; 3], inputs: Kind) -> u64 {
    let multiplications = m.saturating_mul(n).saturating_mul(k);
    let elements = [(m, k), (k, n), (m, n)]
        .into_iter()
        .fold(0, |all: u64, (rows, columns)| all.saturating_add(rows.saturating_mul(columns)));
    let elements = elements.saturating_mul(ByType::new(1, ELEMENT, 1).of(inputs));
    (multiplications / MULTIPLICATIONS).saturating_add(elements).saturating_add(PRODUCT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_counts_its_multiplications_and_its_elements() {
        let of_product = |dims| of_product(dims, Kind::F32);
        let large = of_product([1024, 128, 256]);
        assert!(large > 1024 * 128 * 256 / MULTIPLICATIONS && large < 1024 * 128 * 256);
        // A product with a vector reads as many elements as it multiplies.
        assert!(of_product([1024, 1, 256]) > 1024 * 256);
        assert!(of_product([1, 1, 0]) > 0);
        assert_eq!(of_product([u64::MAX; 3]), u64::MAX);
        assert!(super::of_product([1024, 1, 256], Kind::F16) > 8 * 1024 * 256);
    }
}
