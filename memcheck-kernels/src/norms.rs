//! Softmax and the normalisations of rows.

use super::element::{Element, Number, Real};
use super::layout::Layout;
use super::reduce::{WARP, sum_of_warps, tree};
use super::work::{ByType, LAYER_NORM, RMS_NORM, SOFTMAX, THREAD};
use super::{Known, Launch, Unknown, with_real};

/// `T* src, T* dst, i32 ncols`, a warp for each row
///
/// The exponentials are stored in T, and the quotient is a product with the rounded inverse of
/// their sum. Therefore the last bit can differ from the CPU's.
pub(super) fn softmax(launch: &mut Launch<'_>) -> Known {
    let (from, to, columns) = (launch.long(0), launch.long(1), launch.value::<i32>(2));
    let rows = u64::from(launch.shape.grid[0]) * u64::from(launch.shape.block[0]);
    let lanes = launch.shape.block[1] as usize;
    with_real!(launch.kind, T => {
        let columns = u64::try_from(columns).unwrap_or(0);
        let count = rows.saturating_mul(columns);
        launch.produce(to, count, count.saturating_mul(SOFTMAX.of(T::KIND)), |source| {
            let mut all: Vec<T> = source.elements(from, count)?;
            if lanes != WARP {
                return Err(Unknown);
            }
            for row in all.chunks_exact_mut(columns.max(1) as usize) {
                softmax_of(row)?;
            }
            Ok(all)
        })
    })
}

fn softmax_of<T: Real>(row: &mut [T]) -> Known {
    let largest = row.iter().fold(T::from_f64(f64::NEG_INFINITY), |a, &b| a.larger(b));
    let mut sums = vec![T::Wide::default(); WARP];
    for (column, element) in row.iter_mut().enumerate() {
        *element = element.minus(largest).exp();
        let sum = &mut sums[column % WARP];
        *sum = sum.plus(element.wide());
    }
    let inverse = T::from_wide(tree(sums, Element::plus)?.recip());
    row.iter_mut().for_each(|element| *element = element.times(inverse));
    Ok(())
}

/// `T* src, T* dst, T* alpha, i32 ncols, i32 block_size, f32 eps`
pub(super) fn rms(launch: &mut Launch<'_>) -> Known {
    let norm = Norm {
        alpha: launch.long(2),
        beta: 0,
        columns: launch.value(3),
        threads: launch.value(4),
        eps: launch.value(5),
        element: RMS_NORM,
        sums: 1,
    };
    with_real!(launch.kind, T => norm.run(launch, |row: &[T], norm| {
        let squares = norm.sum(row, |x| x * x)?;
        let scale = inverse_root(squares / norm.columns as f32 + norm.eps);
        Ok(row.iter().map(|&x| scale * single(x)).collect())
    }))
}

/// `T* src, T* dst, T* alpha, T* beta, i32 ncols, i32 block_size, f32 eps`
pub(super) fn layer(launch: &mut Launch<'_>) -> Known {
    let norm = Norm {
        alpha: launch.long(2),
        beta: launch.long(3),
        columns: launch.value(4),
        threads: launch.value(5),
        eps: launch.value(6),
        element: LAYER_NORM,
        sums: 2,
    };
    // The variance is the difference of two means, from one pass; the CPU makes two.
    with_real!(launch.kind, T => norm.run(launch, |row: &[T], norm| {
        let columns = norm.columns as f32;
        let mean = norm.sum(row, |x| x)? / columns;
        let variance = norm.sum(row, |x| x * x)? / columns - mean * mean;
        let scale = inverse_root(variance + norm.eps);
        Ok(row.iter().map(|&x| (single(x) - mean) * scale).collect())
    }))
}

/// A normalisation of rows. All of it is computed in f32, even for f64, unlike on the CPU.
#[derive(Clone, Copy)]
struct Norm {
    /// The factor of each column; null without one.
    alpha: u64,
    /// The summand of each column; null without one.
    beta: u64,
    columns: i32,
    threads: i32,
    eps: f32,
    /// The work of an element.
    element: ByType,
    /// The number of sums of each row.
    sums: u64,
}

impl Norm {
    fn run<T: Real>(
        self,
        launch: &mut Launch<'_>,
        normalise: impl Fn(&[T], Self) -> Known<Vec<f32>>,
    ) -> Known {
        let (from, to) = (launch.long(0), launch.long(1));
        let rows = u64::from(launch.shape.grid[0]) * u64::from(launch.shape.block[1]);
        let columns = u64::try_from(self.columns).unwrap_or(0);
        let count = rows.saturating_mul(columns);
        let threads = u64::try_from(self.threads).unwrap_or(0);
        let of_sums = rows.saturating_mul(threads).saturating_mul(2 * self.sums * THREAD);
        let work = count.saturating_mul(self.element.of(T::KIND)).saturating_add(of_sums);
        launch.produce(to, count, work, |source| {
            let all = source.in_order::<T>(from, &Layout::contiguous(count))?;
            let of_columns = |address: u64| -> Known<Option<Vec<T>>> {
                (address != 0).then(|| source.elements(address, columns)).transpose()
            };
            let (alpha, beta) = (of_columns(self.alpha)?, of_columns(self.beta)?);
            let mut result = Vec::with_capacity(all.len());
            for row in all.chunks_exact(columns.max(1) as usize) {
                for (column, mut value) in normalise(row, self)?.into_iter().enumerate() {
                    if let Some(alpha) = &alpha {
                        value *= single(alpha[column]);
                    }
                    if let Some(beta) = &beta {
                        value += single(beta[column]);
                    }
                    result.push(T::from_f64(f64::from(value)));
                }
            }
            Ok(result)
        })
    }

    /// Sums a function of the elements over the threads of a block, in the device's order.
    fn sum<T: Real>(self, row: &[T], function: impl Fn(f32) -> f32) -> Known<f32> {
        let threads = usize::try_from(self.threads).unwrap_or(0);
        if threads > WARP * WARP {
            return Err(Unknown);
        }
        let mut sums = vec![0_f32; threads];
        for part in row.chunks(threads.max(1)) {
            sums.iter_mut().zip(part).for_each(|(sum, &x)| *sum += function(single(x)));
        }
        sum_of_warps(&sums)
    }
}

/// `rsqrtf`, of which the device's approximation has an error of at most 2 units in the last place.
fn inverse_root(value: f32) -> f32 {
    (1.0 / f64::from(value).sqrt()) as f32
}

fn single<T: Real>(x: T) -> f32 {
    match x.number() {
        Number::Integer(value) => value as f32,
        Number::Real(value) => value as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{TestDevice, arguments};
    use crate::launch::Shape;

    use half::{bf16, f16};

    fn softmax_rows<T: Element>(name: &str, columns: usize, elements: &[T]) -> Option<Vec<T>> {
        let mut device = TestDevice::new();
        let (from, to) = (device.upload(elements), device.allocate(elements.len() * T::WIDTH));
        let rows = elements.len() / columns;
        let shape = Shape { grid: [rows as u32, 1, 1], block: [1, 32, 1] };
        device.launch_shaped(name, shape, &arguments![from, to, columns as i32]);
        device.download(to, elements.len())
    }

    #[test]
    fn the_softmax_of_equal_elements_is_even() {
        assert_eq!(softmax_rows("softmax_f32", 4, &[7_f32; 8]), Some(vec![0.25_f32; 8]));
        assert_eq!(softmax_rows("softmax_f64", 2, &[-1e300_f64; 2]), Some(vec![0.5_f64; 2]));
        assert_eq!(
            softmax_rows("softmax_f16", 64, &[f16::ONE; 64]).unwrap()[63].to_f32(),
            1.0 / 64.0
        );
        assert_eq!(softmax_rows("softmax_bf16", 2, &[bf16::ONE; 2]).unwrap()[0].to_f32(), 0.5);
    }

    #[test]
    fn a_softmax_is_the_quotient_of_exponentials() {
        let logits = [0.5_f64, -1.0, 2.0, f64::NEG_INFINITY];
        let sum: f64 = logits.iter().map(|x| x.exp()).sum();
        let result = softmax_rows("softmax_f64", 4, &logits).unwrap();
        for (x, result) in logits.iter().zip(&result) {
            assert!((result - x.exp() / sum).abs() < 1e-15);
        }
        assert_eq!(result[3], 0.0);
        let result = softmax_rows("softmax_f32", 2, &[f32::NEG_INFINITY; 2]).unwrap();
        assert!(result.iter().all(|x| x.is_nan()));
    }

    #[test]
    fn a_softmax_of_halves_is_rounded_to_f16() {
        let third = f16::from_f32(1.0 / 3.0);
        assert_eq!(softmax_rows("softmax_f16", 3, &[f16::ZERO; 3]), Some(vec![third; 3]));
    }

    fn norm<T: Element>(
        name: &str,
        elements: &[T],
        columns: usize,
        alpha: Option<&[T]>,
        beta: Option<Option<&[T]>>,
    ) -> Vec<T> {
        let mut device = TestDevice::new();
        let (from, to) = (device.upload(elements), device.allocate(elements.len() * T::WIDTH));
        let alpha = alpha.map_or(0, |it| device.upload(it));
        let threads: i32 = if columns < 1024 { 32 } else { 1024 };
        let rows = (elements.len() / columns) as u32;
        let (columns, eps) = (columns as i32, 0_f32);
        match beta {
            None => device.launch_blocks(
                name,
                rows,
                threads as u32,
                &arguments![from, to, alpha, columns, threads, eps],
            ),
            Some(beta) => {
                let beta = beta.map_or(0, |it| device.upload(it));
                device.launch_blocks(
                    name,
                    rows,
                    threads as u32,
                    &arguments![from, to, alpha, beta, columns, threads, eps],
                );
            }
        }
        device.download(to, elements.len()).unwrap()
    }

    #[test]
    fn a_row_is_divided_by_the_root_of_its_mean_square() {
        // The mean square of 2, 2, -2, -2 is 4.
        let row = [2_f32, 2.0, -2.0, -2.0];
        assert_eq!(norm("rmsnorm_f32", &row, 4, None, None), [1_f32, 1.0, -1.0, -1.0]);
        let alpha = [1_f32, 2.0, 3.0, 4.0];
        assert_eq!(norm("rmsnorm_f32", &row, 4, Some(&alpha), None), [1_f32, 2.0, -3.0, -4.0]);
        let halves = row.map(f16::from_f32);
        assert_eq!(
            norm("rmsnorm_f16", &halves, 2, None, None),
            [1.0, 1.0, -1.0, -1.0].map(f16::from_f32)
        );
        let halves = row.map(bf16::from_f32);
        assert_eq!(norm("rmsnorm_bf16", &halves, 4, None, None)[3], bf16::NEG_ONE);
        let long = vec![-3_f32; 2048];
        assert_eq!(norm("rmsnorm_f32", &long, 2048, None, None), vec![-1_f32; 2048]);
    }

    /// The dims of candle-nn's own test.
    #[test]
    fn a_norm_of_24_times_70_rows_of_64_is_known() {
        let elements: Vec<f32> = (0..24 * 70 * 64).map(|at| (at % 7) as f32 - 3.0).collect();
        let (alpha, ones) = (vec![2_f32; 64], vec![1_f32; 64]);
        for result in [
            norm("rmsnorm_f32", &elements, 64, Some(&alpha), None),
            norm("layernorm_f32", &elements, 64, Some(&alpha), Some(Some(&ones))),
        ] {
            assert_eq!(result.len(), elements.len());
            assert!(result.iter().any(|&x| x != 0.0));
        }
    }

    #[test]
    fn a_row_is_centered_and_divided_by_its_deviation() {
        // The mean of 1, 5 is 3 and the deviation 2.
        let row = [1_f32, 5.0, 10.0, 30.0];
        let expected = [-1_f32, 1.0, -1.0, 1.0];
        assert_eq!(norm("layernorm_f32", &row, 2, None, Some(None)), expected);
        let (alpha, beta) = ([2_f32, 3.0], [10_f32, 20.0]);
        let with = norm("layernorm_f32", &row, 2, Some(&alpha), Some(Some(&beta)));
        assert_eq!(with, [8_f32, 23.0, 8.0, 23.0]);
        assert_eq!(
            norm("layernorm_f32", &row, 2, None, Some(Some(&beta))),
            [9_f32, 21.0, 9.0, 21.0]
        );
        assert_eq!(
            norm("layernorm_f32", &row, 2, Some(&alpha), Some(None)),
            [-2_f32, 3.0, -2.0, 3.0]
        );
        let halves = row.map(f16::from_f32);
        assert_eq!(
            norm("layernorm_f16", &halves, 2, None, Some(None)),
            expected.map(f16::from_f32)
        );
        let long: Vec<f64> = (0..4096).map(|at| if at % 2 == 0 { 1.0 } else { 5.0 }).collect();
        let result = norm("layernorm_f64", &long, 2048, None, Some(None));
        assert_eq!((result[0], result[4095]), (-1.0, 1.0));
    }

    /// f64 is computed in f32, unlike on the CPU.
    #[test]
    fn a_norm_of_doubles_has_the_precision_of_singles() {
        let result = norm("rmsnorm_f64", &[1.0 + 1e-12_f64, 1.0], 2, None, None);
        assert_eq!(result, [1.0_f64, 1.0]);
    }

    #[test]
    fn a_norm_with_an_unknown_operand_is_unknown() {
        let mut device = TestDevice::new();
        let (known, unknown) = (device.upload(&[1_f32; 2]), device.allocate(8));
        for (from, alpha) in [(known, unknown), (unknown, known)] {
            let to = device.upload(&[5_f32; 3]);
            let all = arguments![from, to, alpha, 2_i32, 32_i32, 0_f32];
            device.launch_blocks("rmsnorm_f32", 1, 32, &all);
            assert_eq!(device.download::<f32>(to + 4, 1), None);
            assert_eq!(device.download(to + 8, 1), Some(vec![5_f32]));
        }
    }
}
