//! The growth of one space, by call site and by size.

use std::collections::{HashMap, HashSet};

use crate::growth::survivors::Group;
use crate::judgement::head_line::HeadLine;
use crate::measurement::attribution::Attribution;
use crate::measurement::record::{Record, SpaceRecord};
use crate::space::Space;

use super::Suspect;
use super::owners::Owners;
use super::suspect::suspects;

/// The growth of one space, as [`crate::growth::lifetimes`] decided it for sites and sizes.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// The space.
    pub space: Space,
    /// The figures of the space.
    pub measured: &'a SpaceRecord,
    /// The call sites of the run that decided the growth; `None` if no run knew any.
    pub attribution: Option<&'a Attribution>,
    /// Measured iterations.
    pub iterations: u32,
    /// The iterations of the run that knew the call sites.
    pub attributed: u32,
    /// True if the survivors are those of more iterations than the measured ones.
    pub is_longer: bool,
    /// Survivors by call site, the fastest growing first.
    pub suspects: Vec<Suspect<'a>>,
    /// Survivors by size that grow and that no call site accounts for.
    pub unplaced: Vec<&'a Group>,
    /// The growth in bytes per iteration.
    pub bytes_per_iteration: u64,
    /// The functions that store something in a map or in a channel.
    pub(super) owners: Owners,
    /// Call sites that do not grow and hold blocks of this size only, as indices of `suspects`.
    holding: HashMap<u64, Vec<usize>>,
}

impl<'a> Evidence<'a> {
    /// The evidence in `record` for `space`; `None` if the record has no figures of the space.
    pub fn of(record: &'a Record, space: Space) -> Option<Self> {
        let measured = record.spaces.get(&space)?;
        let attribution = record.longer.as_ref().or(record.attribution.as_ref());
        let suspects = attribution.map(|found| suspects(found, space)).unwrap_or_default();
        Some(Self {
            space,
            measured,
            attribution,
            iterations: record.iterations,
            attributed: match (&record.longer, &record.followed) {
                (Some(_), Some(followed)) => followed.iterations,
                _ => record.iterations,
            },
            is_longer: record
                .followed
                .as_ref()
                .is_some_and(|followed| followed.iterations > record.iterations),
            owners: attribution.map(Owners::of).unwrap_or_default(),
            holding: holding(&suspects),
            suspects,
            unplaced: measured.survivors.iter().filter(|group| group.reading.grows()).collect(),
            bytes_per_iteration: measured.metrics.growth,
        })
    }

    /// The line that makes the only list longer that can hold the memory that grows fastest.
    pub fn list(&self) -> Option<HeadLine> {
        self.growing().next().and_then(|suspect| self.owners.list_of(suspect))
    }

    /// The call sites that grow, the fastest first.
    pub fn growing(&self) -> impl Iterator<Item = &Suspect<'a>> {
        self.suspects.iter().filter(|suspect| suspect.grows())
    }

    /// The sizes that grow and that no call site accounts for, each with the call sites that do not
    /// grow and hold blocks of this size only. Of equal sizes, the first has the call sites.
    pub fn sizes(&self) -> impl Iterator<Item = (&'a Group, impl Iterator<Item = &Suspect<'a>>)> {
        let mut listed = HashSet::new();
        self.unplaced.iter().map(move |group| {
            let block = group.block.filter(|block| listed.insert(*block));
            let holding = block.and_then(|block| self.holding.get(&block)).into_iter().flatten();
            (*group, holding.filter_map(|&suspect| self.suspects.get(suspect)))
        })
    }

    /// The call sites that grow or hold a size that grows, each with its bytes per iteration.
    pub(super) fn candidates(&self) -> Vec<(&Suspect<'a>, u64)> {
        let on_average = |suspect: &Suspect<'_>| {
            suspect.survivors.group.bytes() / u64::from(self.iterations.max(1))
        };
        let growing = self.growing().map(|suspect| (suspect, suspect.reading.bytes_per_iteration));
        let holding = self.sizes().flat_map(|(_, holding)| holding);
        growing.chain(holding.map(|suspect| (suspect, on_average(suspect).max(1)))).collect()
    }
}

fn holding(suspects: &[Suspect<'_>]) -> HashMap<u64, Vec<usize>> {
    let mut holding: HashMap<u64, Vec<usize>> = HashMap::new();
    for (number, suspect) in suspects.iter().enumerate().filter(|(_, suspect)| !suspect.grows()) {
        if let Some(block) = suspect.survivors.group.block {
            holding.entry(block).or_default().push(number);
        }
    }
    holding
}

#[cfg(test)]
mod tests {
    use crate::judgement::diagnosis::Evidence;
    use crate::measurement::attribution::builder::{Run, once, steady};
    use crate::measurement::record::example::GPU;

    #[test]
    fn the_growth_is_the_sum_over_call_sites_and_sizes() {
        let record = Run::default()
            .place(&[], steady(512))
            .place(&[], steady(64))
            .place(&[], once(512, 3))
            .unplaced(steady(4096))
            .record();
        let evidence = Evidence::of(&record, GPU).unwrap();
        let places: u64 = evidence.growing().map(|of| of.reading.bytes_per_iteration).sum();
        let sizes: u64 = evidence.unplaced.iter().map(|of| of.reading.bytes_per_iteration).sum();
        assert_eq!((places, sizes), (576, 4096));
        assert_eq!(evidence.bytes_per_iteration, 576 + 4096);
    }

    #[test]
    fn candidates_are_call_sites_that_grow_or_hold_a_growing_size() {
        let record = (0..10)
            .fold(Run::default().place(&[], steady(64)), |run, at| run.place(&[], once(4_096, at)))
            .place(&[], once(9, 3))
            .unplaced(steady(4_096))
            .record();
        let evidence = Evidence::of(&record, GPU).unwrap();
        let candidates: Vec<u64> =
            evidence.candidates().iter().map(|(_, weight)| *weight).collect();
        assert_eq!(candidates, [&[64][..], &[409; 10]].concat());
    }
    #[test]
    fn of_two_groups_of_one_size_the_first_has_the_call_sites() {
        let record = Run::default()
            .place(&[], once(4_096, 1))
            .place(&[], once(4_096, 2))
            .unplaced(steady(4_096))
            .unplaced(steady(4_096))
            .record();
        let evidence = Evidence::of(&record, GPU).unwrap();
        let holding: Vec<usize> = evidence.sizes().map(|(_, holding)| holding.count()).collect();
        assert_eq!(holding, [2, 0]);
    }
}
