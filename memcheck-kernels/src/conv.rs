//! Convolutions, by the kernels that compute them as such and by those that only rearrange the
//! input for a product of matrices.

use half::{bf16, f16};

use super::element::Element;
use super::launch::{AllKnown as _, Random, Source, produce};
use super::layout::Layout;
use super::memory::Memory;
use super::work::TAP;
use super::{ELEMENT, Kind, Known, Launch, Unknown};

/// An element type of images, with the type of its sums: f32 for the types of 16 bits, otherwise
/// its own. Integers wrap.
pub(super) trait Pixel: Element {
    type Sum: Element;

    fn widen(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
    /// The product of a sum and a factor of 32 bits, which is made in f32 unless T is f64.
    fn scaled(sum: Self::Sum, factor: f32) -> Self;
}

macro_rules! pixel {
    ($($type:ident: $sum:ident, |$value:ident| $widen:expr, $narrow:expr, |$factor:ident| $scaled:expr;)*) => {$(
        impl Pixel for $type {
            type Sum = $sum;

            fn widen(self) -> $sum {
                let $value = self;
                $widen
            }

            fn narrow($value: $sum) -> Self {
                $narrow
            }

            fn scaled($value: $sum, $factor: f32) -> Self {
                $scaled
            }
        }
    )*};
}

pixel! {
    u8: u8, |x| x, x, |factor| (f32::from(x) * factor) as u8;
    u32: u32, |x| x, x, |factor| (x as f32 * factor) as u32;
    f32: f32, |x| x, x, |factor| x * factor;
    f64: f64, |x| x, x, |factor| x * f64::from(factor);
    f16: f32, |x| f32::from(x), f16::from_f32(x), |factor| f16::from_f32(x * factor);
    bf16: f32, |x| f32::from(x), bf16::from_f32(x), |factor| bf16::from_f32(x * factor);
}

/// Calls `$work` with `$T` as the element type of a kernel for images.
macro_rules! with_pixel {
    ($kind:expr, $T:ident => $work:expr) => {
        match $kind {
            $crate::Kind::U8 => {
                type $T = u8;
                $work
            }
            $crate::Kind::U32 => {
                type $T = u32;
                $work
            }
            kind => $crate::with_real!(kind, $T => $work),
        }
    };
}
pub(super) use with_pixel;

/// The dims and strides of a tensor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shaped<const RANK: usize> {
    pub(super) dims: [u64; RANK],
    pub(super) strides: [u64; RANK],
}

impl<const RANK: usize> Shaped<RANK> {
    /// Reads the dims and strides of `TENSORS` tensors, one after the other.
    pub(super) fn read<const TENSORS: usize>(
        source: &Source<'_>,
        info: u64,
    ) -> Known<[Self; TENSORS]> {
        let words = source.words(info, (2 * RANK * TENSORS) as u64)?;
        Ok(std::array::from_fn(|tensor| Self {
            dims: std::array::from_fn(|axis| words[2 * RANK * tensor + axis]),
            strides: std::array::from_fn(|axis| words[2 * RANK * tensor + RANK + axis]),
        }))
    }

    pub(super) fn open<'a, T: Element>(
        &self,
        source: &'a Source<'_>,
        at: u64,
    ) -> Known<Random<'a, T>> {
        source.random(at, Layout::new(&self.dims, &self.strides).extent())
    }

    pub(super) fn index(&self, position: [u64; RANK]) -> u64 {
        let axes = position.iter().zip(&self.strides);
        axes.fold(0, |index, (&at, &stride)| index.wrapping_add(at.wrapping_mul(stride)))
    }
}

impl Shaped<3> {
    /// Adds a dim of 1 before the last one.
    fn flat(self) -> Shaped<4> {
        let [a, b, c] = self.dims;
        let [of_a, of_b, of_c] = self.strides;
        Shaped { dims: [a, b, 1, c], strides: [of_a, of_b, 0, of_c] }
    }
}

impl Shaped<4> {
    /// Exchanges the first two dims.
    fn exchanged(self) -> Self {
        let ([a, b, c, d], [of_a, of_b, of_c, of_d]) = (self.dims, self.strides);
        Self { dims: [b, a, c, d], strides: [of_b, of_a, of_c, of_d] }
    }
}

pub(super) fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |all, &factor| all.saturating_mul(factor))
}

/// Where the kernel's element `offset` meets the input for the output at `at`; `None` outside.
pub(super) type Tap<'a> = &'a dyn Fn(u64, u64) -> Option<u64>;

/// The position without the padding, if it is in the input.
pub(super) fn inside(position: u64, padding: u64, length: u64) -> Option<u64> {
    (position >= padding && position < length.wrapping_add(padding)).then(|| position - padding)
}

/// `usize el, l_out, stride, padding, dilation, info* (src, kernel), T* src, T* k, T* dst`
///
/// The position is `(stride * l + offset) * dilation`, as in candle's kernel, which with a dilation
/// is another one than the CPU's.
pub(super) fn one_dim(launch: &mut Launch<'_>) -> Known {
    let [_, out, stride, padding, dilation, info] = std::array::from_fn(|at| launch.long(at));
    let [image, kernel] = Shaped::<3>::read(&launch.source(), info)?;
    let length = image.dims[2];
    let tap = |at: u64, offset: u64| {
        let position = stride.wrapping_mul(at).wrapping_add(offset).wrapping_mul(dilation);
        inside(position, padding, length)
    };
    let shape =
        ConvolutionShape { image: image.flat(), kernel: kernel.flat(), height: 1, width: out };
    convolve(launch, 6, shape, &|_, _| Some(0), &tap)
}

/// `usize el, w_out, h_out, stride, padding, dilation, info* (src, kernel), T* src, T* k, T* dst`
pub(super) fn two_dim(launch: &mut Launch<'_>) -> Known {
    let [_, width, height, stride, padding, dilation, info] =
        std::array::from_fn(|at| launch.long(at));
    let [image, kernel] = Shaped::<4>::read(&launch.source(), info)?;
    let tap = |at: u64, offset: u64, length: u64| {
        let position = stride.wrapping_mul(at).wrapping_add(offset.wrapping_mul(dilation));
        inside(position, padding, length)
    };
    let [_, _, rows, columns] = image.dims;
    let shape = ConvolutionShape { image, kernel, height, width };
    convolve(launch, 7, shape, &|at, k| tap(at, k, rows), &|at, k| tap(at, k, columns))
}

/// `usize el, l_out, stride, padding, out_padding, dilation, info* (src, kernel), T* src, T* k,
/// T* dst`, with the kernel's input channels before the output channels
pub(super) fn transposed_one_dim(launch: &mut Launch<'_>) -> Known {
    let [_, out, stride, padding, _, dilation, info] = std::array::from_fn(|at| launch.long(at));
    let [image, kernel] = Shaped::<3>::read(&launch.source(), info)?;
    let length = image.dims[2];
    let kernel = kernel.flat().exchanged();
    let shape = ConvolutionShape { image: image.flat(), kernel, height: 1, width: out };
    let tap = |at, k| transposed_tap(at, k, [stride, padding, dilation, length]);
    convolve(launch, 7, shape, &|_, _| Some(0), &tap)
}

/// As `transposed_one_dim`, with `w_out, h_out` in place of `l_out`
pub(super) fn transposed_two_dim(launch: &mut Launch<'_>) -> Known {
    let [_, width, height, stride, padding, _, dilation, info] =
        std::array::from_fn(|at| launch.long(at));
    let [image, kernel] = Shaped::<4>::read(&launch.source(), info)?;
    let [_, _, rows, columns] = image.dims;
    let tap = |at, k, length| transposed_tap(at, k, [stride, padding, dilation, length]);
    let shape = ConvolutionShape { image, kernel: kernel.exchanged(), height, width };
    convolve(launch, 8, shape, &|at, k| tap(at, k, rows), &|at, k| tap(at, k, columns))
}

fn transposed_tap(
    at: u64,
    offset: u64,
    [stride, padding, dilation, length]: [u64; 4],
) -> Option<u64> {
    let position = at.checked_add(padding)?.checked_sub(offset.checked_mul(dilation)?)?;
    let is_met = position.checked_rem(stride)? == 0;
    (is_met && position / stride < length).then(|| position / stride)
}

/// The shape of a convolution. The kernel's dims are output channels, input channels, rows and
/// columns.
pub(super) struct ConvolutionShape {
    pub(super) image: Shaped<4>,
    pub(super) kernel: Shaped<4>,
    pub(super) height: u64,
    pub(super) width: u64,
}

/// As [`convolve_at`]. `first` is the number of the pointer `src`, before those of kernel and
/// output.
fn convolve(
    launch: &mut Launch<'_>,
    first: usize,
    shape: ConvolutionShape,
    row: Tap<'_>,
    column: Tap<'_>,
) -> Known {
    let addresses = [0, 1, 2].map(|at| launch.long(first + at));
    convolve_at(launch.memory, launch.kind, addresses, &shape, row, column)
}

/// Sums columns of the kernel, then rows, then channels. An image with more channels than the
/// kernel has groups of them.
pub(super) fn convolve_at(
    memory: &mut dyn Memory,
    kind: Kind,
    [from, kernel_at, to]: [u64; 3],
    shape: &ConvolutionShape,
    row: Tap<'_>,
    column: Tap<'_>,
) -> Known {
    let &ConvolutionShape { image, kernel, height, width } = shape;
    let [batch, all_channels, ..] = image.dims;
    let [out, channels, rows, columns] = kernel.dims;
    let of_group = out / (all_channels / channels.max(1)).max(1);
    let count = product(&[batch, out, height, width]);
    let work =
        product(&[count, channels.max(1), rows.max(1), columns.max(1), TAP]).saturating_add(count);
    with_pixel!(kind, T => {
        produce::<T>(memory, to, count, work, |source| {
            type Sum = <T as Pixel>::Sum;
            let pixels = image.open::<T>(source, from)?;
            let weights = kernel.open::<T>(source, kernel_at)?;
            let mut all = Vec::with_capacity(count as usize);
            for index in 0..count {
                let (x, y) = (index % width, index / width % height);
                let filter = index / (width * height) % out;
                let image_at = index / (width * height * out);
                let first = filter / of_group.max(1) * channels;
                let mut sum = Sum::default();
                for of_column in 0..columns {
                    let Some(column) = column(x, of_column) else { continue };
                    for of_row in 0..rows {
                        let Some(row) = row(y, of_row) else { continue };
                        for channel in 0..channels {
                            let at = [image_at, first + channel, row, column];
                            let pixel = pixels.get(image.index(at))?;
                            let at = [filter, channel, of_row, of_column];
                            let weight = weights.get(kernel.index(at))?;
                            sum = sum.plus(pixel.widen().times(weight.widen()));
                        }
                    }
                }
                all.push(T::narrow(sum));
            }
            Ok(all)
        });
        Ok(())
    })
}

/// `usize threads, l_out, l_k, stride, padding, dilation, info*, T* src, T* dst`, to (batch, l_out,
/// channels, l_k)
pub(super) fn columns_one_dim(launch: &mut Launch<'_>) -> Known {
    let [threads, out, taps, stride, padding, dilation, info, from, to] =
        std::array::from_fn(|at| launch.long(at));
    let [image] = Shaped::<3>::read(&launch.source(), info)?;
    let [_, channels, length] = image.dims;
    let count = threads.saturating_mul(taps);
    with_pixel!(launch.kind, T => {
        launch.produce::<T>(to, count, count.saturating_mul(TAP), |source| {
            let pixels = image.open::<T>(source, from)?;
            let each = channels.checked_mul(out).filter(|&each| each > 0 || count == 0).ok_or(Unknown)?;
            let element = |index: u64| {
                let (tap, thread) = (index % taps, index / taps);
                let (channel, at) = (thread % channels, thread / channels % out);
                let position = at.wrapping_mul(stride).wrapping_add(tap.wrapping_mul(dilation));
                inside(position, padding, length).map_or(Ok(T::default()), |at| {
                    pixels.get(image.index([thread / each, channel, at]))
                })
            };
            (0..count).map(element).all_known()
        })
    })
}

/// `usize n, h_out, w_out, h_k, w_k, stride, padding, dilation, info*, T* src, T* dst`, to (batch,
/// h_out, w_out, channels, h_k, w_k)
pub(super) fn columns_two_dim(launch: &mut Launch<'_>) -> Known {
    let [count, height, width, rows, columns, stride, padding, dilation, info, from, to] =
        std::array::from_fn(|at| launch.long(at));
    let [image] = Shaped::<4>::read(&launch.source(), info)?;
    let [_, channels, of_rows, of_columns] = image.dims;
    with_pixel!(launch.kind, T => {
        launch.produce::<T>(to, count, count.saturating_mul(TAP), |source| {
            let pixels = image.open::<T>(source, from)?;
            if count > 0 && [height, width, rows, columns, channels].contains(&0) {
                return Err(Unknown);
            }
            let tap = |at: u64, offset: u64, length: u64| {
                let position = at.wrapping_mul(stride).wrapping_add(offset.wrapping_mul(dilation));
                inside(position, padding, length)
            };
            let element = |mut index: u64| {
                let [column, row, channel, x, y] = [columns, rows, channels, width, height].map(|dim| {
                    let at = index % dim;
                    index /= dim;
                    at
                });
                let place = tap(y, row, of_rows).zip(tap(x, column, of_columns));
                place.map_or(Ok(T::default()), |(y, x)| {
                    pixels.get(image.index([index, channel, y, x]))
                })
            };
            (0..count).map(element).all_known()
        })
    })
}

/// `usize n, l_out, l_in, c_out, k_size, stride, T* src, T* dst`, from (batch, l_in, c_out, k) to
/// (batch, c_out, l_out)
///
/// Each addition rounds to T.
pub(super) fn from_columns(launch: &mut Launch<'_>) -> Known {
    let [count, out, length, channels, taps, stride, from, to] =
        std::array::from_fn(|at| launch.long(at));
    let each = taps.checked_div(stride).unwrap_or(0).saturating_add(1);
    let work = product(&[count, each.min(length.max(1)), ELEMENT]);
    with_pixel!(launch.kind, T => launch.produce::<T>(to, count, work, |source| {
        if count == 0 {
            return Ok(Vec::new());
        }
        if [out, channels, stride].contains(&0) {
            return Err(Unknown);
        }
        let batches = count.div_ceil(product(&[channels, out]));
        let all = product(&[batches, length, channels, taps]);
        let pixels: Random<'_, T> = source.random(from, all)?;
        (0..count)
            .map(|index| {
                let (at, channel) = (index % out, index / out % channels);
                let batch = index / out / channels;
                let mut sum = T::default();
                for back in 0..=at / stride {
                    let (place, tap) = (at / stride - back, at % stride + back * stride);
                    if tap >= taps {
                        break;
                    }
                    if place < length {
                        let row = (batch * length + place) * channels + channel;
                        sum = sum.plus(pixels.get(row * taps + tap)?);
                    }
                }
                Ok(sum)
            })
            .all_known()
    }))
}

#[cfg(test)]
mod tests;
