//! Pooling and upsampling of images.

use super::conv::{Pixel, Shaped, product, with_pixel};
use super::element::{Element, Number};
use super::launch::{AllKnown as _, Random};
use super::work::TAP;
use super::{ELEMENT, Known, Launch, Unknown};

/// `usize el, w_k, h_k, w_stride, h_stride, info*, T* src, T* dst`
///
/// The kernel's "w" is the third dim. The mean is the sum times a factor of 32 bits, even for f64,
/// unlike on the CPU.
pub(super) fn average(launch: &mut Launch<'_>) -> Known {
    let factor = (1.0 / launch.long(1).wrapping_mul(launch.long(2)) as f64) as f32;
    with_pixel!(launch.kind, T => pool(launch, |window: &mut dyn Iterator<Item = Known<T>>| {
        let mut sum = <T as Pixel>::Sum::default();
        for pixel in window {
            sum = sum.plus(pixel?.widen());
        }
        Ok(T::scaled(sum, factor))
    }))
}

/// As `average`. f32 and f64 drop a NaN; f16 and bf16 keep it.
pub(super) fn largest(launch: &mut Launch<'_>) -> Known {
    with_pixel!(launch.kind, T => pool(launch, |window: &mut dyn Iterator<Item = Known<T>>| {
        let Some(first) = window.next() else { return Ok(T::default()) };
        let mut largest = first?;
        for pixel in window {
            largest = largest.larger(pixel?);
        }
        Ok(largest)
    }))
}

fn pool<T: Pixel>(
    launch: &mut Launch<'_>,
    join: impl Fn(&mut dyn Iterator<Item = Known<T>>) -> Known<T>,
) -> Known {
    let [_, of_rows, of_columns, row_step, column_step, info, from, to] =
        std::array::from_fn(|at| launch.long(at));
    let [image] = Shaped::<4>::read(&launch.source(), info)?;
    let [batch, channels, rows, columns] = image.dims;
    let out = |length: u64, window: u64, step: u64| {
        let steps = length.checked_sub(window).ok_or(Unknown)?.checked_div(step).ok_or(Unknown)?;
        Ok(steps.saturating_add(1))
    };
    let height = out(rows, of_rows, row_step)?;
    let width = out(columns, of_columns, column_step)?;
    let count = product(&[batch, channels, height, width]);
    let work = product(&[count, of_rows, of_columns, TAP]).saturating_add(count);
    launch.produce(to, count, work, |source| {
        let pixels: Random<'_, T> = image.open(source, from)?;
        (0..count)
            .map(|index| {
                let (x, y) = (index % width, index / width % height);
                let plane = index / width / height;
                let (channel, batch) = (plane % channels, plane / channels);
                let mut window = (0..of_rows * of_columns).map(|at| {
                    let row = row_step * y + at / of_columns;
                    let column = column_step * x + at % of_columns;
                    pixels.get(image.index([batch, channel, row, column]))
                });
                join(&mut window)
            })
            .all_known()
    })
}

/// `usize w_out, h_out, f64 w_scale, f64 h_scale, info*, T* src, T* dst`
///
/// The kernel's "w" is the third dim.
pub(super) fn nearest(launch: &mut Launch<'_>) -> Known {
    let [height, width] = [0, 1].map(|at| launch.long(at));
    let [row_scale, column_scale] = [2, 3].map(|at| launch.value::<f64>(at));
    let [info, from, to] = [4, 5, 6].map(|at| launch.long(at));
    let [image] = Shaped::<4>::read(&launch.source(), info)?;
    let [batch, channels, rows, columns] = image.dims;
    let count = product(&[batch, channels, height, width]);
    with_pixel!(launch.kind, T => {
        launch.produce::<T>(to, count, count.saturating_mul(ELEMENT), |source| {
            let pixels: Random<'_, T> = image.open(source, from)?;
            let nearest = |at: u64, scale: f64, length: u64| {
                ((at as f64 * scale) as u64).min(length.wrapping_sub(1))
            };
            (0..count)
                .map(|index| {
                    let plane = index / width / height;
                    let row = nearest(index / width % height, row_scale, rows);
                    let column = nearest(index % width, column_scale, columns);
                    pixels.get(image.index([plane / channels, plane % channels, row, column]))
                })
                .all_known()
        })
    })
}

/// `usize w_out, h_out, bool align, bool has_h, f64 scale_h, bool has_w, f64 scale_w, info*, T*
/// src, T* dst`
///
/// Computed in f64 for each type.
pub(super) fn bilinear(launch: &mut Launch<'_>) -> Known {
    let [width, height] = [0, 1].map(|at| launch.long(at));
    let [is_aligned, has_rows, has_columns] = [2, 3, 5].map(|at| launch.value::<u8>(at) != 0);
    let factors = [4, 6].map(|at| launch.value::<f64>(at));
    let [info, from, to] = [7, 8, 9].map(|at| launch.long(at));
    let [image] = Shaped::<4>::read(&launch.source(), info)?;
    let [batch, channels, rows, columns] = image.dims;
    let count = product(&[batch, channels, height, width]);
    let axis = |length, out, factor| Axis { length, out, factor, is_aligned };
    let vertical = axis(rows, height, has_rows.then_some(factors[0]));
    let horizontal = axis(columns, width, has_columns.then_some(factors[1]));
    with_pixel!(launch.kind, T => {
        launch.produce::<T>(to, count, count.saturating_mul(4 * ELEMENT), |source| {
            let pixels: Random<'_, T> = image.open(source, from)?;
            (0..count)
                .map(|index| {
                    let plane = index / width / height;
                    let (y, below, of_y) = vertical.between(index / width % height);
                    let (x, right, of_x) = horizontal.between(index % width);
                    let pixel = |y, x| {
                        let at = image.index([plane / channels, plane % channels, y, x]);
                        pixels.get(at).map(|pixel| match pixel.number() {
                            Number::Integer(value) => value as f64,
                            Number::Real(value) => value,
                        })
                    };
                    let row = |y| Ok(pixel(y, x)? * (1.0 - of_x) + pixel(y, right)? * of_x);
                    let value = row(y)? * (1.0 - of_y) + row(below)? * of_y;
                    Ok(T::from_number(Number::Real(value)))
                })
                .all_known()
        })
    })
}

/// An axis of an upsampling.
struct Axis {
    length: u64,
    out: u64,
    /// The factor that the caller gave.
    factor: Option<f64>,
    /// Whether the corner pixels of the input and the output are the same.
    is_aligned: bool,
}

impl Axis {
    /// Returns the two input pixels around an output pixel, and the weight of the second one.
    fn between(&self, at: u64) -> (u64, u64, f64) {
        let last = self.length.wrapping_sub(1);
        let position = match self.factor {
            _ if self.is_aligned && self.out > 1 => last as f64 / (self.out - 1) as f64 * at as f64,
            _ if self.is_aligned => 0.0,
            Some(factor) => 1.0 / factor * (at as f64 + 0.5) - 0.5,
            None => self.length as f64 / self.out as f64 * (at as f64 + 0.5) - 0.5,
        };
        let position = position.max(0.0);
        let first = position.floor() as u64;
        let weight = (position - first as f64).clamp(0.0, 1.0);
        (first, first.saturating_add(1).min(last), weight)
    }
}

#[cfg(test)]
mod tests;
