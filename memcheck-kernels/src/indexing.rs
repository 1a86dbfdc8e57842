//! Kernels that read or write at the positions of ids.
//!
//! The largest value of the id type means that there is no element. A kernel asserts that any other
//! id is in the dim. Only the kernels that add in f8 do not: they would access other memory, so
//! that their results are unknown here.

use super::element::{Element, Number};
use super::launch::{AllKnown as _, Random, Source};
use super::{ELEMENT, Kind, Known, Launch, Unknown, with_element};
use crate::asserts::FailedAssert;

/// Positions in a dim, with `None` where there is no element.
type Positions = Vec<Option<u64>>;

/// The ids of a launch.
#[derive(Clone, Copy)]
struct Ids {
    kind: Kind,
    address: u64,
    count: u64,
    /// The size of the dim that they select from.
    dim: u64,
    /// Whether the kernel asserts that they are in the dim.
    is_asserted: bool,
}

/// The reason why ids are not positions.
enum Refused {
    Unknown,
    Outside(i64),
}

impl Ids {
    /// Reads the ids as positions, and makes the kernel's assert, also if the launch itself exceeds
    /// a limit. `operations` are those of the launch, which charges them.
    fn positions(self, launch: &mut Launch<'_>, operations: u64) -> Known<Positions> {
        let work = self.count.saturating_mul(ELEMENT);
        if !launch.permits(work) {
            return Err(Unknown);
        }
        if !launch.permits(operations) {
            launch.memory.values_mut().charge(work);
        }
        let source = launch.source();
        let read = match self.kind {
            Kind::U8 => self.read::<u8>(&source),
            Kind::U32 => self.read::<u32>(&source),
            Kind::I16 => self.read::<i16>(&source),
            Kind::I32 => self.read::<i32>(&source),
            Kind::I64 => self.read::<i64>(&source),
            _ => Err(Refused::Unknown),
        };
        read.map_err(|refused| {
            if let (Refused::Outside(id), true) = (refused, self.is_asserted) {
                let kernel = format!("{}{}", launch.root, launch.kind.suffix());
                launch.memory.fail_assert(FailedAssert { kernel, id, dim: self.dim });
            }
            Unknown
        })
    }

    fn read<I: Element>(self, source: &Source<'_>) -> Result<Positions, Refused> {
        // The conversion saturates.
        let none = I::from_number(Number::Real(f64::INFINITY));
        let ids: Vec<I> =
            source.elements(self.address, self.count).map_err(|_| Refused::Unknown)?;
        ids.into_iter()
            .map(|id| match id.number() {
                _ if id == none && self.is_asserted => Ok(None),
                Number::Integer(id) => {
                    let position = u64::try_from(id).ok().filter(|&position| position < self.dim);
                    position.map(Some).ok_or(Refused::Outside(id))
                }
                Number::Real(_) => Err(Refused::Unknown),
            })
            .collect()
    }
}

fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |all, &factor| all.saturating_mul(factor))
}

/// `usize n, usize num_dims, info*, I* ids, T* in, T* out, usize left, src_dim, ids_dim, right`
///
/// `info` is the layout of the ids. But the kernel reads the ids without their strides, and uses
/// the strides to find the source, which is contiguous. With ids that are not contiguous the device
/// therefore gives another result than the CPU, and so does this function.
pub(super) fn select(launch: &mut Launch<'_>, ids: Kind) -> Known {
    let [count, rank, info, at, from, to, left, dim, of_ids, right] =
        std::array::from_fn(|number| launch.long(number));
    let operations = count.saturating_mul(ELEMENT);
    let ids = match product(&[left, of_ids, right]) == count {
        _ if count == 0 => Ok(Vec::new()),
        true => Ids { kind: ids, address: at, count: of_ids, dim, is_asserted: true }
            .positions(launch, operations),
        false => Err(Unknown),
    };
    with_element!(launch.kind, T => {
        launch.produce::<T>(to, count, operations, |source| {
            let ids = ids?;
            if count == 0 {
                return Ok(Vec::new());
            }
            let layout = Restrided::new(source, rank, info)?;
            let extent = product(&[left, dim, right]);
            if extent == u64::MAX || layout.dims.contains(&0) {
                return Err(Unknown);
            }
            let extent = if layout.is_contiguous { extent } else { layout.extent };
            let elements: Random<'_, T> = source.random(from, extent)?;
            let mut all = Vec::with_capacity(count as usize);
            for outer in 0..left {
                for id in &ids {
                    let Some(id) = id else {
                        all.resize(all.len() + right as usize, T::default());
                        continue;
                    };
                    let first = (outer * dim + id) * right;
                    if layout.is_contiguous {
                        elements.run(first, right, &mut all)?;
                    } else {
                        for index in first..first + right {
                            all.push(elements.get(layout.index(index))?);
                        }
                    }
                }
            }
            Ok(all)
        })
    })
}

/// The layout of ids, which maps any index: those beyond its dims start again.
struct Restrided {
    dims: Vec<u64>,
    strides: Vec<u64>,
    is_contiguous: bool,
    extent: u64,
}

impl Restrided {
    fn new(source: &Source<'_>, rank: u64, info: u64) -> Known<Self> {
        let words =
            if info == 0 { Vec::new() } else { source.words(info, rank.saturating_mul(2))? };
        let (dims, strides) = words.split_at(words.len() / 2);
        let layout = super::layout::Layout::new(dims, strides);
        Ok(Self {
            dims: dims.to_vec(),
            strides: strides.to_vec(),
            is_contiguous: layout.is_contiguous(),
            extent: layout.extent(),
        })
    }

    fn index(&self, mut index: u64) -> u64 {
        let mut strided = 0_u64;
        for (&dim, &stride) in self.dims.iter().zip(&self.strides).rev() {
            strided = strided.wrapping_add((index % dim).wrapping_mul(stride));
            index /= dim;
        }
        strided
    }
}

/// `usize n, I* ids, T* in, T* out, usize left, src_dim, ids_dim, right`
pub(super) fn gather(launch: &mut Launch<'_>, ids: Kind) -> Known {
    let [count, at, from, to, left, dim, of_ids, right] =
        std::array::from_fn(|number| launch.long(number));
    let operations = count.saturating_mul(3 * ELEMENT);
    let ids = match product(&[left, of_ids, right]) == count {
        _ if count == 0 => Ok(Vec::new()),
        true => Ids { kind: ids, address: at, count, dim, is_asserted: true }
            .positions(launch, operations),
        false => Err(Unknown),
    };
    with_element!(launch.kind, T => {
        launch.produce::<T>(to, count, operations, |source| {
            let ids = ids?;
            if count == 0 {
                return Ok(Vec::new());
            }
            let extent = product(&[left, dim, right]);
            if extent == u64::MAX {
                return Err(Unknown);
            }
            let elements: Random<'_, T> = source.random(from, extent)?;
            let pairs = (0..count).zip(ids);
            pairs
                .map(|(index, id)| match id {
                    None => Ok(T::default()),
                    Some(id) => {
                        let outer = index / (right * of_ids);
                        elements.get((outer * dim + id) * right + index % right)
                    }
                })
                .all_known()
        })
    })
}

/// `I* ids, usize ids_dim, T* in, T* out, usize left, src_dim, dst_dim, right`
///
/// Adds the elements of each id in order, with a rounding to T after each.
pub(super) fn add(launch: &mut Launch<'_>, ids: Kind) -> Known {
    let [at, of_ids, from, to, left, _, dim, right] =
        std::array::from_fn(|number| launch.long(number));
    let is_asserted = is_asserted_to_add(launch.kind);
    let ids = Ids { kind: ids, address: at, count: of_ids, dim, is_asserted };
    let scatter = Scatter { ids, from, to, left, of_ids, right };
    with_element!(launch.kind, T => scatter.run(launch, |old: Option<T>, new| old.map(|it| it.plus(new))))
}

/// `I* ids, T* in, T* out, usize left, src_dim, dst_dim, right`
///
/// Of several elements for the same place the last one stays.
pub(super) fn scatter(launch: &mut Launch<'_>, ids: Kind) -> Known {
    let scatter = Scatter::of(launch, ids, true);
    with_element!(launch.kind, T => scatter.run(launch, |_, new: T| Some(new)))
}

/// As `scatter`, but adds the elements in order, with a rounding to T after each.
pub(super) fn scatter_add(launch: &mut Launch<'_>, ids: Kind) -> Known {
    let scatter = Scatter::of(launch, ids, is_asserted_to_add(launch.kind));
    with_element!(launch.kind, T => scatter.run(launch, |old: Option<T>, new| old.map(|it| it.plus(new))))
}

fn is_asserted_to_add(kind: Kind) -> bool {
    !matches!(kind, Kind::F8 | Kind::Fp8)
}

/// A kernel that changes elements of its target.
#[derive(Clone, Copy)]
struct Scatter {
    /// One for each element, or one for each of `of_ids`, which all positions of `left` and `right`
    /// share.
    ids: Ids,
    from: u64,
    to: u64,
    left: u64,
    of_ids: u64,
    right: u64,
}

/// Elements for consecutive places.
struct Run<T> {
    first: u64,
    elements: Vec<T>,
}

impl Scatter {
    fn of(launch: &Launch<'_>, kind: Kind, is_asserted: bool) -> Self {
        let [address, from, to, left, of_ids, dim, right] =
            std::array::from_fn(|number| launch.long(number));
        let ids = Ids { kind, address, count: product(&[left, of_ids, right]), dim, is_asserted };
        Self { ids, from, to, left, of_ids, right }
    }

    fn run<T: Element>(
        self,
        launch: &mut Launch<'_>,
        change: impl Fn(Option<T>, T) -> Option<T>,
    ) -> Known {
        // A run of places costs a search for its block, and most runs can be short.
        let work = product(&[self.left.max(1), self.of_ids.max(1), self.right.max(1), 4 * ELEMENT]);
        let width = T::WIDTH as u64;
        let length = product(&[self.left, self.ids.dim, self.right, width]);
        let ids = match product(&[self.left, self.of_ids, self.right]) {
            0 => Ok(Vec::new()),
            _ => self.ids.positions(launch, work),
        };
        let runs = match length < u64::MAX && launch.permits(work) {
            true => ids.and_then(|ids| self.runs(&launch.source(), &ids)),
            false => Err(Unknown),
        };
        let Ok(runs) = runs else {
            launch.memory.overwritten(self.to, length);
            return Ok(());
        };
        launch.memory.values_mut().charge(work);
        for Run { first, elements } in runs {
            let address = self.to.wrapping_add(first * width);
            let count = elements.len() as u64;
            let old: Option<Vec<T>> = launch.source().elements(address, count).ok();
            let new = elements
                .into_iter()
                .enumerate()
                .map(|(at, element)| change(old.as_ref().map(|old| old[at]), element));
            match new.collect::<Option<Vec<T>>>() {
                Some(new) => launch.produce(address, count, 0, |_| Ok(new))?,
                None => launch.memory.overwritten(address, count * width),
            }
        }
        Ok(())
    }

    /// Returns the changes in the device's order, as far as they are for the same place.
    fn runs<T: Element>(self, source: &Source<'_>, ids: &Positions) -> Known<Vec<Run<T>>> {
        let count = product(&[self.left, self.of_ids, self.right]);
        let elements: Vec<T> = source.elements(self.from, count)?;
        let are_shared = ids.len() as u64 != count;
        let mut runs: Vec<Run<T>> = Vec::new();
        for (index, element) in elements.into_iter().enumerate() {
            let index = index as u64;
            let (row, post) = (index / self.right, index % self.right);
            let (pre, position) = (row / self.of_ids, row % self.of_ids);
            let id = ids[if are_shared { position } else { index } as usize];
            let Some(id) = id else { continue };
            let place = (pre * self.ids.dim + id) * self.right + post;
            match runs.last_mut() {
                Some(run) if run.first + run.elements.len() as u64 == place => {
                    run.elements.push(element);
                }
                _ => runs.push(Run { first: place, elements: vec![element] }),
            }
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests;
