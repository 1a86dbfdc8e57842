//! The product of two matrices whose elements were read, by the crate that candle's CPU backend uses.

use std::borrow::Cow;

#[cfg(feature = "gemm")]
use super::Kind;
use super::Known;
use super::element::{Element, Real};
use super::launch::Source;
use super::layout::Layout;
use super::operand::Operand;

/// A matrix in the type of its sums. The element `at` of row or column `number` has the index
/// `number * steps[0] + at * steps[1]`.
pub(super) struct Matrix<'a, W: Clone> {
    elements: Cow<'a, [W]>,
    steps: [usize; 2],
    /// All elements are zeros that have no storage on the device.
    is_zero: bool,
}

impl<'a, W: Real> Matrix<'a, W> {
    /// Reads a matrix of these dims, without a copy if that is possible.
    pub(super) fn read<T: Element>(
        source: &Source<'a>,
        address: u64,
        dims: [u64; 2],
        operand: Operand,
        wide: fn(T) -> W,
    ) -> Known<Self> {
        let steps = if operand.transposed { [1, operand.leading] } else { [operand.leading, 1] };
        let layout = Layout::new(&dims, &steps);
        let packed = [dims[1] as usize, 1];
        if source.are_zeros::<T>(address, layout.extent()) {
            let elements = Cow::Owned(vec![W::default(); layout.count() as usize]);
            return Ok(Self { elements, steps: packed, is_zero: true });
        }
        // The loop wants rows without gaps.
        let is_usable = cfg!(feature = "gemm") || layout.is_contiguous();
        if T::KIND == W::KIND
            && is_usable
            && let Some(elements) = source.stored(address, layout.extent())
        {
            let steps = steps.map(|step| step as usize);
            return Ok(Self { elements: Cow::Borrowed(elements), steps, is_zero: false });
        }
        let elements: Vec<T> = source.strided(address, &layout)?;
        let elements = Cow::Owned(elements.into_iter().map(wide).collect());
        Ok(Self { elements, steps: packed, is_zero: false })
    }

    /// True if the product with `other` is zero: infinity times zero is not.
    fn annuls(&self, other: &Self) -> bool {
        let is_finite = |x: &W| x.minus(*x) == W::default();
        self.is_zero && (other.is_zero || other.elements.iter().all(is_finite))
    }
}

/// Computes A B. The sums are zeros before.
pub(super) fn multiply<W: Real>(
    sums: &mut [W],
    dims: [usize; 3],
    a: &Matrix<'_, W>,
    b: &Matrix<'_, W>,
) {
    // PERF: the weights of a model that only counts are often zeros.
    if !a.annuls(b) && !b.annuls(a) {
        multiply_known(sums, dims, a, b);
    }
}

/// Computes A B, by the crate that candle's CPU backend uses.
#[cfg(feature = "gemm")]
fn multiply_known<W: Real>(
    sums: &mut [W],
    [m, n, k]: [usize; 3],
    a: &Matrix<'_, W>,
    b: &Matrix<'_, W>,
) {
    let last = |of: &Matrix<'_, W>, [outer, inner]: [usize; 2]| {
        (outer.max(1) - 1) * of.steps[0] + (inner.max(1) - 1) * of.steps[1]
    };
    assert!(sums.len() == m * n && [Kind::F32, Kind::F64].contains(&W::KIND));
    assert!(k == 0 || last(a, [k, m]) < a.elements.len() && last(b, [n, k]) < b.elements.len());
    let [of_a, of_b] = [a, b].map(|matrix| matrix.steps.map(|step| step as isize));
    // SAFETY: the assertions check that the elements of all three matrices are in their slices, and
    // that the type is one of the crate's. The sums are borrowed mutably, so that they overlap none.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            sums.as_mut_ptr(),
            m as isize,
            1,
            false,
            a.elements.as_ptr(),
            of_a[0],
            of_a[1],
            b.elements.as_ptr(),
            of_b[0],
            of_b[1],
            W::default(),
            W::from_f64(1.0),
            false,
            false,
            false,
            // The work is on the thread that launches, whose allocations are not counted.
            gemm::Parallelism::None,
        );
    }
}

/// Computes A B, in the order of the inner dimension.
#[cfg(not(feature = "gemm"))]
fn multiply_known<W: Real>(
    sums: &mut [W],
    [m, _, k]: [usize; 3],
    a: &Matrix<'_, W>,
    b: &Matrix<'_, W>,
) {
    for (column, sums) in sums.chunks_exact_mut(m).enumerate() {
        add_products(sums, &a.elements, &b.elements[column * b.steps[0]..][..k]);
    }
}

/// Adds the rows of A, each times its factor, to a column of C, from the first row to the last.
#[cfg(not(feature = "gemm"))]
fn add_products<T: Real>(sums: &mut [T], a: &[T], factors: &[T]) {
    let length = sums.len();
    let mut rows = a.chunks_exact(length);
    let mut fours = factors.chunks_exact(4);
    // PERF: four rows for each time that the sums are read and written.
    for four in &mut fours {
        let [p, q, r, s] = std::array::from_fn(|_| rows.next().expect("A has a row per factor"));
        for (index, sum) in sums.iter_mut().enumerate() {
            let two = sum.plus(p[index].times(four[0])).plus(q[index].times(four[1]));
            *sum = two.plus(r[index].times(four[2])).plus(s[index].times(four[3]));
        }
    }
    for (row, &factor) in rows.zip(fours.remainder()) {
        for (sum, &element) in sums.iter_mut().zip(row) {
            *sum = sum.plus(element.times(factor));
        }
    }
}
