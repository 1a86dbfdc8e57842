//! What grows in one space, and by how much: the figure that a verdict judges
//! and that a profile shows.

use crate::attribution::Attribution;
use crate::record::{Record, SpaceRecord};
use crate::space::Space;
use crate::survivors::{self, Group};

use super::Suspect;
use super::suspect::suspects;

/// Everything that is known of the growth of one space.
///
/// Call sites tell a leak from its neighbours of the same size, and see one
/// whose sizes all differ. What was left behind at many places once each, or by
/// nobody that is known, survivors by size prove all the same: they stand
/// beside the places, less what those account for. A level of totals proves
/// nothing where there are call sites.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// The space.
    pub space: Space,
    /// The figures of the space.
    pub measured: &'a SpaceRecord,
    /// Who held what; `None` in a run that only counted.
    pub attribution: Option<&'a Attribution>,
    /// Measured iterations.
    pub iterations: u32,
    /// Survivors by place, the fastest growing first.
    pub suspects: Vec<Suspect<'a>>,
    /// Survivors by size that grow and that no growing place accounts for.
    pub unplaced: Vec<Group>,
    /// Bytes an iteration, all together: never less than a run that only
    /// counted has proved by its survivors.
    pub bytes_per_iteration: u64,
}

impl<'a> Evidence<'a> {
    /// What `record` says of `space`; `None` where it says nothing.
    pub fn of(record: &'a Record, space: Space) -> Option<Self> {
        let measured = record.spaces.get(&space)?;
        let attribution = record.attribution.as_ref();
        let suspects = attribution.map(|found| suspects(found, space)).unwrap_or_default();
        let unplaced = unplaced(&measured.survivors, &suspects);
        let bytes_per_iteration = match attribution {
            Some(_) => rate(measured, &suspects, &unplaced),
            None => measured.metrics.growth,
        };
        let iterations = record.iterations;
        Some(Self {
            space,
            measured,
            attribution,
            iterations,
            suspects,
            unplaced,
            bytes_per_iteration,
        })
    }

    /// The places that grow, the fastest first.
    pub fn growing(&self) -> impl Iterator<Item = &Suspect<'a>> {
        self.suspects.iter().filter(|suspect| suspect.grows())
    }

    /// Places that do not grow, and hold blocks of this size: one of many.
    pub fn holding(&self, block: Option<u64>) -> impl Iterator<Item = &Suspect<'a>> {
        self.suspects.iter().filter(move |suspect| {
            block.is_some() && !suspect.grows() && suspect.survivors.group.block == block
        })
    }

    /// Places that the growth is made of: those that grow, and those that hold
    /// blocks of a size that does. Each with its bytes an iteration.
    pub(super) fn accused(&self) -> Vec<(&Suspect<'a>, u64)> {
        let on_average = |suspect: &Suspect<'_>| {
            suspect.survivors.group.bytes() / u64::from(self.iterations.max(1))
        };
        let growing = self.growing().map(|suspect| (suspect, suspect.reading.bytes_per_iteration));
        let holding = self.unplaced.iter().flat_map(|group| self.holding(group.block));
        growing.chain(holding.map(|suspect| (suspect, on_average(suspect).max(1)))).collect()
    }
}

/// Growing groups by size, less what growing places of that size account for.
fn unplaced(sizes: &[Group], suspects: &[Suspect<'_>]) -> Vec<Group> {
    let rest = |group: &Group| {
        let placed = suspects.iter().filter(|suspect| {
            suspect.grows() && group.block.is_some() && suspect.survivors.group.block == group.block
        });
        placed.fold(group.clone(), |rest, suspect| rest.without(&suspect.survivors.group))
    };
    let growing = sizes.iter().filter(|group| group.read().pattern.is_growth());
    growing.map(rest).filter(|rest| rest.read().pattern.is_growth()).collect()
}

/// The growth of a run with call sites.
fn rate(measured: &SpaceRecord, suspects: &[Suspect<'_>], unplaced: &[Group]) -> u64 {
    let of_places = |alike: bool| -> u64 {
        let places =
            suspects.iter().filter(|suspect| suspect.survivors.group.block.is_some() == alike);
        places.map(|suspect| suspect.reading.bytes_per_iteration).sum()
    };
    // Of places whose sizes differ it is not known which sizes they account for.
    let of_sizes = survivors::growth(unplaced, &[]);
    let found = of_places(true) + of_places(false).max(of_sizes);
    found.max(survivors::growth(&measured.survivors, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::builder::{Run, buffer, kept, of_sizes, once, steady};
    use crate::verdict::tests::GPU;

    /// The figure of the run that counted, of the one that explains, and the
    /// bytes an iteration of sizes that no place accounts for.
    fn figures(run: Run) -> (u64, u64, Vec<u64>) {
        let explained = run.record();
        let counted = Record { attribution: None, ..explained.clone() };
        let of = |record: &Record| Evidence::of(record, GPU).unwrap().bytes_per_iteration;
        let evidence = Evidence::of(&explained, GPU).unwrap();
        let rates = evidence.unplaced.iter().map(|group| group.read().bytes_per_iteration);
        (of(&counted), of(&explained), rates.collect())
    }

    #[test]
    fn a_leak_has_one_figure_with_call_sites_and_without() {
        assert_eq!(figures(Run::default().place(&[], steady(512))), (512, 512, vec![]));
        let two = Run::default().place(&[], steady(512)).place(&[], steady(64));
        assert_eq!(figures(two), (576, 576, vec![]));
        let of_one_size = Run::default().place(&[], steady(512)).place(&[], steady(512));
        assert_eq!(figures(of_one_size), (1024, 1024, vec![]));
        assert_eq!(figures(Run::default().place(&[], once(512, 3))), (0, 0, vec![]));
    }

    #[test]
    fn what_many_lines_leave_once_each_stands_beside_what_one_leaves_always() {
        let scattered = (0..10).fold(Run::default().place(&[], steady(1 << 10)), |run, at| {
            run.place(&[], once(4 << 20, at))
        });
        let both = (4 << 20) + (1 << 10);
        assert_eq!(figures(scattered), (both, both, vec![4 << 20]));
        let by_nobody = Run::default().place(&[], steady(1 << 10)).nobody(steady(4 << 20));
        assert_eq!(figures(by_nobody), (both, both, vec![4 << 20]));
        let of_one_size = Run::default().place(&[], steady(512)).nobody(steady(512));
        assert_eq!(figures(of_one_size), (1024, 1024, vec![512]));
        // Once each in five iterations, and no more.
        let stopped = (0..5).fold(Run::default().place(&[], steady(1 << 10)), |run, at| {
            run.place(&[], once(4 << 20, at))
        });
        assert_eq!(figures(stopped), (1 << 10, 1 << 10, vec![]));
    }

    #[test]
    fn a_place_whose_sizes_differ_is_seen_beside_what_sizes_prove() {
        let uneven = of_sizes([10, 20, 50, 30, 90, 40, 70, 60, 80, 100]);
        let rate = uneven.read().bytes_per_iteration;
        assert!(rate > 0);
        assert_eq!(figures(Run::default().place(&[], uneven.clone())), (0, rate, vec![]));
        // Its blocks may be those that the sizes prove: they are not counted twice.
        let less = Run::default().place(&[], uneven.clone()).nobody(steady(rate - 1));
        assert_eq!(figures(less), (rate - 1, rate, vec![rate - 1]));
        let more = Run::default().place(&[], uneven).nobody(steady(rate + 1));
        assert_eq!(figures(more), (rate + 1, rate + 1, vec![rate + 1]));
    }

    #[test]
    fn a_cache_of_the_same_size_is_no_part_of_a_leak() {
        let filled = kept(512, [3, 3, 3, 0, 0, 0, 0, 0, 0, 0]);
        let beside = Run::default().place(&[], steady(512)).place(&[], filled);
        let (counted, explained, unplaced) = figures(beside);
        assert_eq!((explained, unplaced), (512.max(counted), vec![]));
    }

    #[test]
    fn a_level_that_rises_is_proved_by_its_place_alone() {
        let levels = std::array::from_fn(|at| 1_000 + 64 * at as u64);
        let with_level = |run: Run| {
            let mut record = run.record();
            let measured = record.spaces.get_mut(&GPU).unwrap();
            measured.allocated = levels.to_vec();
            measured.metrics.growth = survivors::growth(&measured.survivors, &levels);
            record
        };
        let rate = |record: &Record| Evidence::of(record, GPU).unwrap().bytes_per_iteration;
        let seen = with_level(Run::default().place(&[], buffer(levels)));
        assert_eq!((rate(&seen), seen.spaces[&GPU].metrics.growth), (64, 64));
        assert_eq!(rate(&with_level(Run::default())), 0);
    }

    #[test]
    fn the_accused_are_places_that_grow_and_those_that_share_a_size_that_does() {
        let record = (0..10)
            .fold(Run::default().place(&[], steady(64)), |run, at| run.place(&[], once(4_096, at)))
            .place(&[], once(9, 3))
            .record();
        let evidence = Evidence::of(&record, GPU).unwrap();
        let accused: Vec<u64> = evidence.accused().iter().map(|(_, weight)| *weight).collect();
        assert_eq!(accused, [&[64][..], &[409; 10]].concat());
    }
}
