//! Sums, extremes and their positions over the last dims of a permuted layout.
//!
//! A block of threads computes an output: thread t takes the elements t, t + threads, …, and a tree
//! joins the threads. The order matters to the sum of real numbers, and to the position of an
//! extreme that occurs more than once. There the device differs from the CPU, and so do these
//! functions.

use half::{bf16, f16};

use super::element::{Element, Number, Real};
use super::launch::{AllKnown as _, Source};
use super::layout::Layout;
use super::work::{ARITHMETIC, THREAD};
use super::{Kind, Known, Launch, Unknown, with_number};

/// Threads that exchange their values without shared memory.
pub(super) const WARP: usize = 32;

/// The arguments of all reductions:
///
/// `usize src_n, usize elements of an output, usize num_dims, info*, T* src, O* dst`
///
/// The number of outputs is that of the blocks.
#[derive(Clone, Copy)]
struct Reduction {
    all: u64,
    each: u64,
    rank: u64,
    info: u64,
    from: u64,
    to: u64,
    outputs: u64,
    threads: usize,
}

impl Reduction {
    fn of(launch: &Launch<'_>) -> Self {
        let [all, each, rank, info, from, to] = [0, 1, 2, 3, 4, 5].map(|at| launch.long(at));
        let outputs = u64::from(launch.shape.grid[0]);
        Self { all, each, rank, info, from, to, outputs, threads: launch.shape.block[0] as usize }
    }

    /// Computes each output from the index of its first element and its elements.
    fn run<T: Element, O: Element>(
        self,
        launch: &mut Launch<'_>,
        mut output: impl FnMut(&Source<'_>, &Layout, u64, &[T]) -> Known<O>,
    ) -> Known {
        let of_threads = self.outputs.saturating_mul(self.threads as u64).saturating_mul(THREAD);
        let work = self.all.saturating_mul(ARITHMETIC.of(T::KIND)).saturating_add(of_threads);
        launch.produce(self.to, self.outputs, work, |source| {
            let [layout] = source.layouts(self.all, self.rank, self.info)?;
            let elements = source.in_order::<T>(self.from, &layout)?;
            (0..self.outputs)
                .map(|number| {
                    let first = number.saturating_mul(self.each).min(self.all);
                    let end = first.saturating_add(self.each).min(self.all);
                    output(source, &layout, first, &elements[first as usize..end as usize])
                })
                .all_known()
        })
    }
}

/// Joins the value of each thread with that of the thread half of the number above it, until one is
/// left.
pub(super) fn tree<V: Copy>(mut values: Vec<V>, join: impl Fn(V, V) -> V) -> Known<V> {
    let mut half = values.len() / 2;
    while half > 0 {
        for thread in 0..half {
            values[thread] = join(values[thread], values[thread + half]);
        }
        half /= 2;
    }
    values.first().copied().ok_or(Unknown)
}

/// Adds the values of the threads, first in each warp and then over the warps.
pub(super) fn sum_of_warps(threads: &[f32]) -> Known<f32> {
    if threads.len() < WARP || threads.len() > WARP * WARP {
        return Err(Unknown);
    }
    let warps = threads.chunks_exact(WARP).map(|warp| tree(warp.to_vec(), |a, b| a + b));
    let mut warps = warps.all_known()?;
    warps.resize(WARP, 0.0);
    tree(warps, |a, b| a + b)
}

/// Joins elements as a block of threads does, of which each starts with `start`.
fn by_block<T: Copy>(
    threads: usize,
    elements: &[T],
    start: T,
    join: impl Fn(T, T) -> T,
) -> Known<T> {
    let mut values = vec![start; threads];
    for row in elements.chunks(threads.max(1)) {
        values.iter_mut().zip(row).for_each(|(value, &element)| *value = join(*value, element));
    }
    tree(values, join)
}

/// Sums f32 and bf16 in f32, the other types in their own type: f16 rounds each addition, and
/// exceeds its range at 65504.
pub(super) fn sum(launch: &mut Launch<'_>) -> Known {
    match launch.kind {
        Kind::F32 => sum_vectors::<f32, 4>(launch, |sum, [x, y, z, w]| sum + (x + y + z + w)),
        Kind::Bf16 => {
            sum_vectors::<bf16, 8>(launch, |sum, vector| vector.iter().fold(sum, |a, b| a + b))
        }
        _ => sum_in_own_type(launch),
    }
}

/// Sums every type in its own, as candle-kernels does for all types up to 0.11.0.
pub(super) fn sum_in_own_type(launch: &mut Launch<'_>) -> Known {
    let reduction = Reduction::of(launch);
    let threads = reduction.threads;
    with_number!(launch.kind, T => reduction.run(launch, |_, _, _, elements: &[T]| {
        by_block(threads, elements, T::default(), T::plus)
    }))
}

/// Sums in f32. A contiguous source is read in vectors of 16 bytes, as far as these lie within the
/// elements of an output, if its address is aligned.
fn sum_vectors<T: Real<Wide = f32>, const WIDTH: usize>(
    launch: &mut Launch<'_>,
    add: impl Fn(f32, [f32; WIDTH]) -> f32,
) -> Known {
    let reduction = Reduction::of(launch);
    let threads = reduction.threads;
    reduction.run(launch, |_, layout, first, elements: &[T]| {
        let elements: Vec<f32> = elements.iter().map(|element| element.wide()).collect();
        let mut sums = vec![0_f32; threads];
        let mut add_each = |part: &[f32]| {
            for row in part.chunks(threads.max(1)) {
                sums.iter_mut().zip(row).for_each(|(sum, element)| *sum += element);
            }
        };
        if !layout.is_contiguous() {
            add_each(&elements);
            return Ok(T::from_wide(sum_of_warps(&sums)?));
        }
        let width = WIDTH as u64;
        let end = first + elements.len() as u64;
        let head = (first.next_multiple_of(width).min(end) - first) as usize;
        let (head, rest) = elements.split_at(head);
        let (vectors, tail) = rest.split_at(rest.len() / WIDTH * WIDTH);
        add_each(head);
        if reduction.from.is_multiple_of(16) {
            let vectors: Vec<[f32; WIDTH]> = vectors
                .chunks_exact(WIDTH)
                .map(|vector| std::array::from_fn(|at| vector[at]))
                .collect();
            for row in vectors.chunks(threads.max(1)) {
                sums.iter_mut().zip(row).for_each(|(sum, &vector)| *sum = add(*sum, vector));
            }
        } else {
            add_each(vectors);
        }
        for row in tail.chunks(threads.max(1)) {
            sums.iter_mut().zip(row).for_each(|(sum, element)| *sum += element);
        }
        Ok(T::from_wide(sum_of_warps(&sums)?))
    })
}

/// `usize dst_n, usize elements of an output, usize num_dims, info*, T* src, T* dst`
///
/// A thread sums an output in order; f16 and bf16 in f32.
pub(super) fn sum_small(launch: &mut Launch<'_>) -> Known {
    match launch.kind {
        Kind::F16 => sum_rows(launch, |row: &[f16]| {
            f16::from_f32(row.iter().fold(0.0, |sum, element| sum + element.to_f32()))
        }),
        Kind::Bf16 => sum_rows(launch, |row: &[bf16]| {
            bf16::from_f32(row.iter().fold(0.0, |sum, element| sum + element.to_f32()))
        }),
        kind => with_number!(kind, T => sum_rows(launch, |row: &[T]| {
            row.iter().fold(T::default(), |sum, &element| sum.plus(element))
        })),
    }
}

fn sum_rows<T: Element>(launch: &mut Launch<'_>, sum: impl Fn(&[T]) -> T) -> Known {
    let [outputs, each, rank, info, from, to] = [0, 1, 2, 3, 4, 5].map(|at| launch.long(at));
    let all = outputs.saturating_mul(each);
    let work = all.saturating_add(outputs).saturating_mul(ARITHMETIC.of(T::KIND));
    launch.produce(to, outputs, work, |source| {
        if each == 0 {
            return Ok(vec![T::default(); outputs as usize]);
        }
        let [layout] = source.layouts(all, rank, info)?;
        let elements = source.in_order::<T>(from, &layout)?;
        Ok(elements.chunks_exact(each as usize).map(sum).collect())
    })
}

/// The smallest or the largest element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extreme {
    Smallest,
    Largest,
}

impl Extreme {
    /// What each thread starts with: infinity, or the limit of an integer type.
    fn start<T: Element>(self) -> T {
        T::from_number(Number::Real(match self {
            Self::Smallest => f64::INFINITY,
            Self::Largest => f64::NEG_INFINITY,
        }))
    }

    fn join<T: Element>(self, a: T, b: T) -> T {
        match self {
            Self::Smallest => a.smaller(b),
            Self::Largest => a.larger(b),
        }
    }

    /// Returns whether `other` replaces `own`. A NaN neither replaces nor is replaced.
    fn is_beaten<T: Element>(self, own: T, other: T) -> bool {
        match self {
            Self::Smallest => other < own,
            Self::Largest => other > own,
        }
    }
}

pub(super) fn extreme(launch: &mut Launch<'_>, extreme: Extreme) -> Known {
    let reduction = Reduction::of(launch);
    with_number!(launch.kind, T => reduction.run(launch, |_, _, _, elements: &[T]| {
        by_block(reduction.threads, elements, extreme.start(), |a, b| extreme.join(a, b))
    }))
}

/// The position of an extreme in the last dim.
///
/// Among equal elements a thread keeps the first. In the tree it keeps its own. Therefore the
/// winner is the thread with the smallest number, read with its bits reversed: of `[1, 3, 3, 1]`
/// the largest is at 2. The CPU gives 1.
pub(super) fn position(launch: &mut Launch<'_>, extreme: Extreme) -> Known {
    let reduction = Reduction::of(launch);
    let threads = reduction.threads;
    with_number!(launch.kind, T => {
        let mut last = None;
        reduction.run(launch, |source, _, first, elements: &[T]| {
            let dim = match last {
                Some(dim) => dim,
                None => last_dim(source, reduction)?,
            };
            last = Some(dim);
            let mut values = vec![(extreme.start::<T>(), u32::MAX); threads];
            for (at, &element) in elements.iter().enumerate() {
                let (own, position) = &mut values[at % threads];
                if at < threads || extreme.is_beaten(*own, element) {
                    (*own, *position) = (element, ((first + at as u64) % dim) as u32);
                }
            }
            let join = |own: (T, u32), other: (T, u32)| {
                if extreme.is_beaten(own.0, other.0) { other } else { own }
            };
            tree(values, join).map(|(_, position)| position)
        })
    })
}

fn last_dim(source: &Source<'_>, reduction: Reduction) -> Known<u64> {
    if reduction.info == 0 || reduction.rank == 0 {
        return Err(Unknown);
    }
    let dims = source.words(reduction.info, reduction.rank)?;
    dims.last().copied().filter(|&dim| dim > 0).ok_or(Unknown)
}

#[cfg(test)]
mod tests;
