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
