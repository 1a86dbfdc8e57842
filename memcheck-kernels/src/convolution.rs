//! A convolution by cuDNN, in terms of its descriptors.
//!
//! Sums of 16-bit types are made in f32. cuDNN makes some of them in 16 bits, and does not document
//! the order.

use super::conv::{self, Shaped, convolve_at};
use super::memory::Memory;
use super::{Kind, Unknown};

/// A tensor of four dims, or a filter. A filter is always contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tensor {
    /// The type of its elements.
    pub kind: Kind,
    /// A tensor: batch, channels, rows, columns. A filter: output channels, input channels, rows,
    /// columns.
    pub dims: [u64; 4],
    /// Elements from one index of each dim to the next.
    pub strides: [u64; 4],
}

impl Tensor {
    /// Returns a tensor without gaps, whose last dim is contiguous.
    pub fn contiguous(kind: Kind, dims: [u64; 4]) -> Self {
        let [_, b, c, d] = dims;
        Self { kind, dims, strides: [b * c * d, c * d, d, 1] }
    }
}

/// A convolution of two dims: rows, then columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Convolution {
    /// Zeros before the first and after the last row or column.
    pub pads: [u64; 2],
    /// Rows and columns of the image from one output to the next.
    pub strides: [u64; 2],
    /// Rows and columns of the image from one element of the filter to the next.
    pub dilations: [u64; 2],
    /// The number of groups of channels.
    pub groups: u64,
    /// Whether the filter is reversed, as in a convolution in the sense of mathematics.
    pub is_reversed: bool,
}

impl Convolution {
    /// Returns the number of rows or columns of the output; `None` if the filter does not fit.
    pub fn output(&self, axis: usize, input: u64, filter: u64) -> Option<u64> {
        let span = filter.checked_sub(1)?.checked_mul(self.dilations[axis])?.checked_add(1)?;
        let padded = input.checked_add(self.pads[axis].checked_mul(2)?)?;
        Some(padded.checked_sub(span)? / self.strides[axis] + 1)
    }
}

/// A convolution of tensors on the device.
#[derive(Debug, Clone, Copy)]
pub struct Convolve {
    /// The input.
    pub image: Tensor,
    /// The weights.
    pub filter: Tensor,
    /// The result.
    pub output: Tensor,
    /// How the filter moves over the image.
    pub convolution: Convolution,
    /// The addresses of image, filter and output.
    pub addresses: [u64; 3],
}

impl Convolve {
    /// Computes the output if it is plain: not scaled, and nothing is added to it.
    pub fn run(&self, memory: &mut dyn Memory, is_plain: bool) {
        let &Self { image, filter, output, convolution, addresses } = self;
        let [.., height, width] = output.dims;
        let is_contiguous = output == Tensor::contiguous(output.kind, output.dims);
        let shaped = |tensor: Tensor| Shaped { dims: tensor.dims, strides: tensor.strides };
        let shape =
            conv::ConvolutionShape { image: shaped(image), kernel: shaped(filter), height, width };
        let tap = |axis: usize, at: u64, offset: u64| {
            let offset = match convolution.is_reversed {
                true => filter.dims[2 + axis] - 1 - offset,
                false => offset,
            };
            let position = at * convolution.strides[axis] + offset * convolution.dilations[axis];
            conv::inside(position, convolution.pads[axis], image.dims[2 + axis])
        };
        let done = match is_plain && is_contiguous {
            true => {
                let (row, column) = (|at, k| tap(0, at, k), |at, k| tap(1, at, k));
                convolve_at(memory, image.kind, addresses, &shape, &row, &column)
            }
            false => Err(Unknown),
        };
        if done == Err(Unknown) {
            memory.overwritten_from(addresses[2]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::TestDevice;

    #[test]
    fn the_output_has_a_row_for_each_position_of_the_filter() {
        let convolution = Convolution {
            pads: [1, 0],
            strides: [2, 1],
            dilations: [1, 3],
            groups: 1,
            is_reversed: false,
        };
        assert_eq!(convolution.output(0, 8, 3), Some(4));
        assert_eq!(convolution.output(1, 8, 3), Some(2));
        assert_eq!(convolution.output(1, 6, 3), None);
        assert_eq!(convolution.output(1, 6, 0), None);
    }

    #[test]
    fn groups_of_channels_have_their_own_filters() {
        let mut device = TestDevice::new();
        let convolution = Convolution {
            pads: [0, 1],
            strides: [1, 1],
            dilations: [1, 1],
            groups: 2,
            is_reversed: false,
        };
        // Two channels of one row with two columns; a filter of two columns for each.
        let image = device.upload(&[1_f32, 2.0, 10.0, 20.0]);
        let filter = device.upload(&[1_f32, 3.0, 1.0, -1.0]);
        let output = device.allocate(6 * 4);
        let mut convolve = Convolve {
            image: Tensor::contiguous(Kind::F32, [1, 2, 1, 2]),
            filter: Tensor::contiguous(Kind::F32, [2, 1, 1, 2]),
            output: Tensor::contiguous(Kind::F32, [1, 2, 1, 3]),
            convolution,
            addresses: [image, filter, output],
        };
        convolve.run(&mut device.memory, true);
        let expected = vec![3_f32, 7.0, 2.0, -10.0, -10.0, 20.0];
        assert_eq!(device.download(output, 6), Some(expected));
        convolve.convolution.is_reversed = true;
        convolve.run(&mut device.memory, true);
        let expected = vec![1_f32, 5.0, 6.0, 10.0, 10.0, -20.0];
        assert_eq!(device.download(output, 6), Some(expected));
        convolve.run(&mut device.memory, false);
        assert!(!device.is_known(output));
    }
}
