//! Random cases: an operation, a type, shapes and layouts.

use candle_core::{DType, Device, Result, Tensor};
use proptest::prelude::*;

use crate::operations::OPERATIONS;

/// The views of a tensor that an operation can get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Contiguous,
    /// The two last dims are exchanged.
    Transposed,
    /// The first dim is the last one.
    Rotated,
    /// A part that begins in the middle of the storage.
    Part,
    /// Each second element of the last dim.
    Strided,
    /// One row that is repeated along the first dim, with stride 0.
    Broadcast,
}

const VIEWS: [View; 6] =
    [View::Contiguous, View::Transposed, View::Rotated, View::Part, View::Strided, View::Broadcast];

const TYPES: [DType; 7] =
    [DType::F32, DType::F64, DType::F16, DType::BF16, DType::U8, DType::U32, DType::I64];

/// A case of the comparison.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The number in [`OPERATIONS`].
    pub(crate) operation: usize,
    pub(crate) dtype: DType,
    /// The dims that an operation's first input has.
    pub(crate) dims: Vec<usize>,
    pub(crate) views: [View; 2],
    /// Small numbers that an operation uses for its own sizes, such as a dim or a stride.
    pub(crate) choices: [usize; 4],
    pub(crate) seed: u64,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    // Most dims are small. Some are zero, and some exceed a warp or a block of threads.
    let dim =
        prop_oneof![1 => Just(0_usize), 20 => 1_usize..6, 4 => 6_usize..40, 1 => 200_usize..1200];
    let dims = prop::collection::vec(dim, 1..5).prop_map(limited);
    let view = || prop::sample::select(&VIEWS[..]);
    (
        0..OPERATIONS.len(),
        prop::sample::select(&TYPES[..]),
        dims,
        [view(), view()],
        [0_usize..1000, 0_usize..1000, 0_usize..1000, 0_usize..1000],
        any::<u64>(),
    )
        .prop_map(|(operation, dtype, dims, views, choices, seed)| Case {
            operation,
            dtype,
            dims,
            views,
            choices,
            seed,
        })
}

/// Reduces dims until the tensor has at most 2,048 elements.
fn limited(mut dims: Vec<usize>) -> Vec<usize> {
    // An empty dim does not count, because an operation can replace it.
    while dims.iter().map(|&dim| dim.max(1)).product::<usize>() > 2048 {
        if let Some(largest) = dims.iter_mut().max() {
            *largest /= 2;
        }
    }
    dims
}

/// A generator of numbers that both devices get.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A tensor on the CPU: multiples of 1/8 from -4 to 4, or integers from 1 to 9.
    pub(crate) fn tensor(&mut self, dims: &[usize], dtype: DType) -> Result<Tensor> {
        let count = dims.iter().product();
        let numbers: Vec<f64> = match dtype.is_float() {
            true => (0..count).map(|_| self.below(65) as f64 / 8.0 - 4.0).collect(),
            false => (0..count).map(|_| 1.0 + self.below(9) as f64).collect(),
        };
        Tensor::from_vec(numbers, dims, &Device::Cpu)?.to_dtype(dtype)
    }

    /// A tensor on the CPU in which no number occurs twice in a row of the last dim, so that an
    /// order is unique.
    pub(crate) fn distinct(&mut self, dims: &[usize], dtype: DType) -> Result<Tensor> {
        let last = dims.last().copied().unwrap_or(1);
        let rows: usize = dims[..dims.len().saturating_sub(1)].iter().product();
        let mut numbers = Vec::new();
        for _ in 0..rows {
            let mut row: Vec<f64> = (0..last).map(|at| at as f64).collect();
            for at in (1..last).rev() {
                row.swap(at, self.below(at + 1));
            }
            numbers.extend(row);
        }
        Tensor::from_vec(numbers, dims, &Device::Cpu)?.to_dtype(dtype)
    }

    /// A tensor of ids below `end`.
    pub(crate) fn ids(&mut self, dims: &[usize], end: usize, dtype: DType) -> Result<Tensor> {
        let count: usize = dims.iter().product();
        let ids: Vec<u32> = (0..count).map(|_| self.below(end) as u32).collect();
        Tensor::from_vec(ids, dims, &Device::Cpu)?.to_dtype(dtype)
    }
}

/// Returns a tensor of these dims that is a view of another one.
pub(crate) fn viewed(
    numbers: &mut Numbers,
    dims: &[usize],
    dtype: DType,
    view: View,
    device: &Device,
) -> Result<Tensor> {
    let rank = dims.len();
    let mut larger = dims.to_vec();
    match view {
        View::Contiguous => numbers.tensor(dims, dtype)?.to_device(device),
        View::Transposed if rank >= 2 => {
            larger.swap(rank - 2, rank - 1);
            numbers.tensor(&larger, dtype)?.to_device(device)?.transpose(rank - 2, rank - 1)
        }
        View::Rotated if rank >= 2 => {
            larger.rotate_left(1);
            let order: Vec<usize> = (0..rank).map(|at| (at + rank - 1) % rank).collect();
            numbers.tensor(&larger, dtype)?.to_device(device)?.permute(order)
        }
        View::Part => {
            let dim = numbers.below(rank);
            larger[dim] += 3;
            numbers.tensor(&larger, dtype)?.to_device(device)?.narrow(dim, 2, dims[dim])
        }
        View::Strided => {
            larger.push(2);
            let pairs = numbers.tensor(&larger, dtype)?.to_device(device)?;
            pairs.narrow(rank, 1, 1)?.squeeze(rank)
        }
        View::Broadcast => {
            larger[0] = 1;
            numbers.tensor(&larger, dtype)?.to_device(device)?.broadcast_as(dims)
        }
        View::Transposed | View::Rotated => numbers.tensor(dims, dtype)?.to_device(device),
    }
}
