//! A launch as its kernel sees it: the arguments, and the memory that it reads and writes.

use std::borrow::Cow;

use super::arguments::Arguments;
use super::element::Element;
use super::kinds::Kind;
use super::layout::Layout;
use super::memory::Memory;
use crate::values::View;

/// The reason why a kernel has no result: a value that it depends on is unknown, or a limit does
/// not permit the launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown;

pub(crate) type Known<T = ()> = Result<T, Unknown>;

/// Collects elements until one is unknown.
///
/// `collect` does the same, but gives LLVM 550 lines more to compile for each caller.
pub(crate) trait AllKnown<T>: Iterator<Item = Known<T>> + Sized {
    fn all_known(self) -> Known<Vec<T>> {
        let mut all = Vec::new();
        for element in self {
            all.push(element?);
        }
        Ok(all)
    }
}

impl<T, I: Iterator<Item = Known<T>>> AllKnown<T> for I {}

/// The numbers of blocks and of threads in a block, along x, y and z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads in a block along x, y and z.
    pub block: [u32; 3],
}

/// A launch of a kernel with a known signature.
pub(crate) struct Launch<'a> {
    pub(super) memory: &'a mut dyn Memory,
    /// The kernel's name without the type.
    pub(super) root: &'static str,
    /// The element type in the kernel's name.
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
    pub(super) arguments: Arguments,
}

impl Launch<'_> {
    /// Returns a pointer or a `size_t`.
    pub(crate) fn long(&self, number: usize) -> u64 {
        self.arguments.long(number)
    }

    /// Returns a value of the type `T`, such as an `int`.
    pub(crate) fn value<T: Element>(&self, number: usize) -> T {
        self.arguments.element(number)
    }

    /// Computes `count` elements at `address`. If they cannot be known, exactly these elements
    /// become unknown.
    ///
    /// `operations` is the work of the launch, for the limits.
    pub(crate) fn produce<T: Element>(
        &mut self,
        address: u64,
        count: u64,
        operations: u64,
        compute: impl FnOnce(&Source<'_>) -> Known<Vec<T>>,
    ) -> Known {
        produce(self.memory, address, count, operations, compute);
        Ok(())
    }

    /// Returns whether the limits permit this many operations.
    pub(crate) fn permits(&self, operations: u64) -> bool {
        self.memory.values().permits(operations)
    }

    /// Reads inputs, if the limits permit this many operations.
    pub(crate) fn read<T>(
        &self,
        operations: u64,
        read: impl FnOnce(&Source<'_>) -> Known<T>,
    ) -> Known<T> {
        if self.permits(operations) { read(&self.source()) } else { Err(Unknown) }
    }

    /// Returns the memory for reading.
    pub(crate) fn source(&self) -> Source<'_> {
        Source { memory: self.memory }
    }
}

/// As [`Launch::produce`].
pub(super) fn produce<T: Element>(
    memory: &mut dyn Memory,
    address: u64,
    count: u64,
    operations: u64,
    compute: impl FnOnce(&Source<'_>) -> Known<Vec<T>>,
) {
    // A kernel visits each element, even if another dim is 0.
    let operations = operations.max(count);
    let result = match memory.values().permits(operations) && has_room::<T>(memory, address, count)
    {
        true => compute(&Source { memory }),
        false => Err(Unknown),
    };
    finish(memory, address, count, operations, result);
}

/// True if a result can be stored, so that it is not computed in vain.
pub(super) fn has_room<T: Element>(memory: &dyn Memory, address: u64, count: u64) -> bool {
    let span = memory.span(address, count.saturating_mul(T::KIND.width()));
    span.is_none_or(|span| memory.values().has_room(span))
}

/// Not a part of `produce`, which is compiled once for each closure.
pub(super) fn finish<T: Element>(
    memory: &mut dyn Memory,
    address: u64,
    count: u64,
    operations: u64,
    result: Known<Vec<T>>,
) {
    match result {
        Ok(elements) => {
            let bytes = bytes_of(&elements);
            debug_assert_eq!(bytes.len() as u64, count * T::KIND.width());
            // Only now, because a launch with unknown inputs computes nothing.
            memory.values_mut().count_operations(operations);
            memory.write_bytes(address, bytes);
        }
        Err(Unknown) => memory.overwritten_elements(address, count, T::KIND),
    }
}

/// Device memory for reading.
pub(crate) struct Source<'a> {
    memory: &'a dyn Memory,
}

impl<'a> Source<'a> {
    pub(super) fn new(memory: &'a dyn Memory) -> Self {
        Self { memory }
    }

    /// Reads `count` consecutive elements.
    pub(crate) fn elements<T: Element>(&self, address: u64, count: u64) -> Known<Vec<T>> {
        // An empty tensor can have any address.
        if count == 0 {
            return Ok(Vec::new());
        }
        let length = count.checked_mul(T::WIDTH as u64).ok_or(Unknown)?;
        match self.memory.accessed(address, length) {
            Some(span) => {
                let bytes = self.memory.values().bytes(span).ok_or(Unknown)?;
                Ok(bytes.chunks_exact(T::WIDTH).map(T::load).collect())
            }
            None => {
                let bytes = self.memory.host_bytes(address, length).ok_or(Unknown)?;
                Ok(bytes.chunks_exact(T::WIDTH).map(T::load).collect())
            }
        }
    }

    /// Returns `count` consecutive elements that are known and stored, without a copy. `None` has no
    /// meaning: they may be known.
    pub(crate) fn stored<T: Element>(&self, address: u64, count: u64) -> Option<&'a [T]> {
        let length = count.checked_mul(T::WIDTH as u64).filter(|&length| length > 0)?;
        let view = self.memory.values().view(self.memory.span(address, length)?)?;
        let bytes = view.bytes().filter(|_| view.knows(0, length))?;
        // SAFETY: an element is a number of `WIDTH` bytes, for which every pattern of bits is valid.
        let (before, elements, after) = unsafe { bytes[..length as usize].align_to::<T>() };
        (before.is_empty() && after.is_empty()).then_some(elements)
    }

    /// True if `count` consecutive elements are zeros without storage.
    pub(crate) fn are_zeros<T: Element>(&self, address: u64, count: u64) -> bool {
        let length = count.saturating_mul(T::WIDTH as u64);
        let span = self.memory.span(address, length).filter(|_| length > 0);
        let view = span.and_then(|span| self.memory.values().view(span));
        view.is_some_and(|view| view.bytes().is_none() && view.knows(0, length))
    }

    /// As [`Source::strided`], without a copy if that is possible.
    pub(crate) fn in_order<T: Element>(
        &self,
        address: u64,
        layout: &Layout,
    ) -> Known<Cow<'a, [T]>> {
        if layout.is_contiguous()
            && let Some(elements) = self.stored(address, layout.count())
        {
            return Ok(Cow::Borrowed(elements));
        }
        self.strided(address, layout).map(Cow::Owned)
    }

    /// Reads the elements of a layout in row-major order.
    pub(crate) fn strided<T: Element>(&self, address: u64, layout: &Layout) -> Known<Vec<T>> {
        let width = T::WIDTH as u64;
        if layout.is_contiguous() {
            return self.elements(address, layout.count());
        }
        let length = layout.extent().checked_mul(width).ok_or(Unknown)?;
        let Some(span) = self.memory.accessed(address, length) else {
            let all: Vec<T> = self.elements(address, layout.extent())?;
            return Ok(picked(layout, |index| all[index as usize]));
        };
        let view = self.memory.values().view(span).ok_or(Unknown)?;
        // PERF: one look-up, because mostly the whole extent is known. Otherwise a gap between
        // rows may be unknown.
        let is_known = view.knows(0, length)
            || layout.rows(|first, stride, count| match stride {
                0 | 1 => view.knows(first * width, if stride == 0 { width } else { count * width }),
                _ => (0..count).all(|at| view.knows((first + at * stride) * width, width)),
            });
        if !is_known {
            return Err(Unknown);
        }
        Ok(match view.bytes() {
            None => vec![T::default(); layout.count() as usize],
            Some(bytes) => {
                picked(layout, |index| T::load(&bytes[index as usize * T::WIDTH..][..T::WIDTH]))
            }
        })
    }

    /// Opens `count` elements for reads in any order.
    pub(crate) fn random<T: Element>(&self, address: u64, count: u64) -> Known<Random<'_, T>> {
        let length = count.checked_mul(T::WIDTH as u64).ok_or(Unknown)?;
        let Some(span) = self.memory.accessed(address, length.max(1)) else {
            return Ok(Random::Read(self.elements(address, count)?));
        };
        let view = self.memory.values().view(span).ok_or(Unknown)?;
        Ok(Random::Block { is_known: view.knows(0, length), view, count })
    }

    /// Returns the layouts of `operands` tensors that have the same dims, from a kernel's argument
    /// `info`: the dims, then the strides of each tensor. A null `info` means that all are
    /// contiguous, with `count` elements.
    pub(crate) fn layouts<const OPERANDS: usize>(
        &self,
        count: u64,
        rank: u64,
        info: u64,
    ) -> Known<[Layout; OPERANDS]> {
        if info == 0 {
            return Ok(std::array::from_fn(|_| Layout::contiguous(count)));
        }
        let words = self.words(info, rank.saturating_mul(OPERANDS as u64 + 1))?;
        let rank = rank as usize;
        let (dims, strides) = words.split_at(rank);
        let layouts: [Layout; OPERANDS] =
            std::array::from_fn(|operand| Layout::new(dims, &strides[operand * rank..][..rank]));
        // The kernel computes `count` elements, whatever the dims say.
        if layouts.iter().all(|layout| layout.count() == count) {
            Ok(layouts)
        } else {
            Err(Unknown)
        }
    }

    /// Reads integers of 64 bits, such as dims and strides.
    pub(crate) fn words(&self, address: u64, count: u64) -> Known<Vec<u64>> {
        // candle has no element type `u64`.
        let words: Vec<i64> = self.elements(address, count)?;
        Ok(words.into_iter().map(|word| word as u64).collect())
    }
}

/// Elements that are read in any order. Only those that are read must be known.
pub(crate) enum Random<'a, T> {
    Block { view: View<'a>, count: u64, is_known: bool },
    Read(Vec<T>),
}

impl<T: Element> Random<'_, T> {
    pub(crate) fn get(&self, index: u64) -> Known<T> {
        match self {
            Self::Read(all) => all.get(index as usize).copied().ok_or(Unknown),
            Self::Block { view, count, is_known } => {
                let (first, width) = (index.saturating_mul(T::WIDTH as u64), T::WIDTH);
                if index >= *count || !(*is_known || view.knows(first, width as u64)) {
                    return Err(Unknown);
                }
                let bytes = view.bytes().map(|bytes| &bytes[first as usize..][..width]);
                Ok(bytes.map_or_else(T::default, T::load))
            }
        }
    }

    /// Reads consecutive elements.
    pub(crate) fn run(&self, first: u64, count: u64, to: &mut Vec<T>) -> Known {
        for index in first..first.saturating_add(count) {
            to.push(self.get(index)?);
        }
        Ok(())
    }
}

fn picked<T: Element>(layout: &Layout, element: impl Fn(u64) -> T) -> Vec<T> {
    let mut all = Vec::with_capacity(layout.count() as usize);
    layout.rows(|first, stride, count| {
        all.extend((0..count).map(|at| element(first + at * stride)));
        true
    });
    all
}

/// Returns the bytes of elements as memory holds them.
pub(super) fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    debug_assert_eq!(size_of::<T>(), T::WIDTH);
    // SAFETY: the elements are numbers of `WIDTH` bytes without padding, so each byte of the slice
    // is initialized. The result borrows the slice.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}
