//! Kernels that read or write at the positions of ids.
//!
//! The largest value of the id type means that there is no element. An id beyond the dim stops the
//! context of a device. Here it makes the result unknown.

use super::element::{Element, Number};
use super::launch::{Random, Source};
use super::{ELEMENT, Kind, Known, Launch, Unknown, with_element};

/// Reads ids as positions, with `None` where there is no element.
fn positions(
    source: &Source<'_>,
    kind: Kind,
    address: u64,
    count: u64,
    dim: u64,
) -> Known<Vec<Option<u64>>> {
    fn of<I: Element>(
        source: &Source<'_>,
        address: u64,
        count: u64,
        dim: u64,
    ) -> Known<Vec<Option<u64>>> {
        // The conversion saturates.
        let none = I::from_number(Number::Real(f64::INFINITY));
        let ids: Vec<I> = source.elements(address, count)?;
        ids.into_iter()
            .map(|id| match id.number() {
                _ if id == none => Ok(None),
                Number::Integer(id) => {
                    u64::try_from(id).ok().filter(|&id| id < dim).map(Some).ok_or(Unknown)
                }
                Number::Real(_) => Err(Unknown),
            })
            .collect()
    }
    match kind {
        Kind::U8 => of::<u8>(source, address, count, dim),
        Kind::U32 => of::<u32>(source, address, count, dim),
        Kind::I16 => of::<i16>(source, address, count, dim),
        Kind::I32 => of::<i32>(source, address, count, dim),
        Kind::I64 => of::<i64>(source, address, count, dim),
        _ => Err(Unknown),
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
    with_element!(launch.kind, T => {
        launch.produce::<T>(to, count, count.saturating_mul(ELEMENT), |source| {
            if product(&[left, of_ids, right]) != count {
                return Err(Unknown);
            }
            if count == 0 {
                return Ok(Vec::new());
            }
            let layout = Restrided::new(source, rank, info)?;
            let extent = product(&[left, dim, right]);
            if extent == u64::MAX || layout.dims.contains(&0) {
                return Err(Unknown);
            }
            let extent = if layout.is_contiguous { extent } else { layout.extent };
            let ids = positions(source, ids, at, of_ids, dim)?;
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
    with_element!(launch.kind, T => {
        launch.produce::<T>(to, count, count.saturating_mul(ELEMENT), |source| {
            if count == 0 {
                return Ok(Vec::new());
            }
            if product(&[left, of_ids, right]) != count {
                return Err(Unknown);
            }
            let extent = product(&[left, dim, right]);
            if extent == u64::MAX {
                return Err(Unknown);
            }
            let ids = positions(source, ids, at, count, dim)?;
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
                .collect()
        })
    })
}

/// `I* ids, usize ids_dim, T* in, T* out, usize left, src_dim, dst_dim, right`
///
/// Adds the elements of each id in order, with a rounding to T after each.
pub(super) fn add(launch: &mut Launch<'_>, ids: Kind) -> Known {
    let [at, of_ids, from, to, left, _, dim, right] =
        std::array::from_fn(|number| launch.long(number));
    let scatter = Scatter { ids, at, from, to, left, of_ids, dim, right, shared: true };
    with_element!(launch.kind, T => scatter.run(launch, |old: Option<T>, new| old.map(|it| it.plus(new))))
}

/// `I* ids, T* in, T* out, usize left, src_dim, dst_dim, right`
///
/// Of several elements for the same place the last one stays.
pub(super) fn scatter(launch: &mut Launch<'_>, ids: Kind) -> Known {
    let scatter = Scatter::of(launch, ids);
    with_element!(launch.kind, T => scatter.run(launch, |_, new: T| Some(new)))
}

/// As `scatter`, but adds the elements in order, with a rounding to T after each.
pub(super) fn scatter_add(launch: &mut Launch<'_>, ids: Kind) -> Known {
    let scatter = Scatter::of(launch, ids);
    with_element!(launch.kind, T => scatter.run(launch, |old: Option<T>, new| old.map(|it| it.plus(new))))
}

/// A kernel that changes elements of its target.
#[derive(Clone, Copy)]
struct Scatter {
    ids: Kind,
    at: u64,
    from: u64,
    to: u64,
    left: u64,
    of_ids: u64,
    dim: u64,
    right: u64,
    /// Whether all positions of `left` and `right` have the same ids.
    shared: bool,
}

/// Elements for consecutive places.
struct Run<T> {
    first: u64,
    elements: Vec<T>,
}

impl Scatter {
    fn of(launch: &Launch<'_>, ids: Kind) -> Self {
        let [at, from, to, left, of_ids, dim, right] =
            std::array::from_fn(|number| launch.long(number));
        Self { ids, at, from, to, left, of_ids, dim, right, shared: false }
    }

    fn run<T: Element>(
        self,
        launch: &mut Launch<'_>,
        change: impl Fn(Option<T>, T) -> Option<T>,
    ) -> Known {
        // A run of places costs a search for its block, and most runs can be short.
        let work = product(&[self.left.max(1), self.of_ids.max(1), self.right.max(1), 4 * ELEMENT]);
        let width = T::WIDTH as u64;
        let length = product(&[self.left, self.dim, self.right, width]);
        let runs = match length < u64::MAX && launch.memory.values().permits(work) {
            true => self.runs(&launch.source()),
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
    fn runs<T: Element>(self, source: &Source<'_>) -> Known<Vec<Run<T>>> {
        let count = product(&[self.left, self.of_ids, self.right]);
        let ids_count = if self.shared { self.of_ids } else { count };
        let elements: Vec<T> = source.elements(self.from, count)?;
        let ids = positions(source, self.ids, self.at, ids_count, self.dim)?;
        let mut runs: Vec<Run<T>> = Vec::new();
        for (index, element) in elements.into_iter().enumerate() {
            let index = index as u64;
            let (row, post) = (index / self.right, index % self.right);
            let (pre, position) = (row / self.of_ids, row % self.of_ids);
            let id = ids[if self.shared { position } else { index } as usize];
            let Some(id) = id else { continue };
            let place = (pre * self.dim + id) * self.right + post;
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
