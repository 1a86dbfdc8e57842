//! `x * mul + add`.

use super::element::Element;
use super::unary::map;
use super::work::ARITHMETIC;
use super::{Known, Launch, with_element};

/// `usize n, usize num_dims, info*, T* in, T* out, T mul, T add`
///
/// A device can fuse the two operations into one rounding. They are made in two roundings here, as
/// on the CPU.
pub(super) fn run(launch: &mut Launch<'_>) -> Known {
    with_element!(launch.kind, T => {
        let (factor, summand): (T, T) = (launch.value(5), launch.value(6));
        map(launch, [3, 4], ARITHMETIC.of(T::KIND), |x: T| x.times_plus(factor, summand))
    })
}
