//! The line through which a kept graph holds its tensors.

use std::collections::HashSet;

use crate::judgement::diagnosis::Evidence;
use crate::judgement::finding::HeadLine;
use crate::measurement::attribution::Lifetime;
use crate::measurement::stack::Owner;

/// The line of the program that computes the last of the growing blocks in the last iteration. The
/// tensors of a graph hold their inputs, so that the last one holds all others.
///
/// `None` if the order of the blocks is not known: small blocks of the host are counted in a space
/// of their own, and a run with too many blocks leaves out the small ones.
pub fn kept_through(evidence: &Evidence<'_>) -> Option<HeadLine> {
    let attribution = evidence.attribution.filter(|_| evidence.space.is_device())?;
    let lifetimes = attribution.peaks.get(&evidence.space)?.lifetimes.as_ref()?;
    let (begun, ended) = (*lifetimes.iterations.last()?, lifetimes.ended?);
    let growing: HashSet<usize> =
        evidence.growing().map(|suspect| suspect.survivors.stack).collect();
    let stack_of = |life: &Lifetime| attribution.places.get(life.place).map(|place| place.stack);
    let is_kept = |life: &&Lifetime| {
        let outlives = life.died.is_none_or(|died| died > ended);
        life.born > begun && life.born <= ended && outlives
    };
    let kept = lifetimes.blocks.iter().filter(is_kept).filter(|_| lifetimes.left_out == 0);
    let of_growing = kept.filter(|life| stack_of(life).is_some_and(|at| growing.contains(&at)));
    let last = of_growing.max_by_key(|life| life.born)?;
    let mut frames = attribution.stacks.get(stack_of(last)?)?.of_iteration().iter();
    let frame = frames.find(|frame| frame.owner() == Owner::User)?;
    Some(HeadLine { file: frame.file.clone()?, line: frame.line?, function: Some(frame.path()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::attribution::builder::{Run, steady};
    use crate::measurement::attribution::{Lifetimes, Peak};
    use crate::measurement::record::example::GPU;
    use crate::space::Space;

    /// The line of the last kept block, if three lines allocate in each of two iterations.
    fn line(blocks: &[(usize, u64, Option<u64>)], left_out: u64) -> Option<u32> {
        let run = Run::default().place(&[], steady(512)).place(&[], steady(4));
        let mut record = run.place(&[], steady(8)).record();
        let life = |&(place, born, died)| Lifetime { place, born, died, bytes: 4 };
        let lifetimes = Lifetimes {
            iterations: vec![2, 8],
            ended: Some(14),
            blocks: blocks.iter().map(life).collect(),
            left_out,
            ..Lifetimes::default()
        };
        let attribution = record.attribution.as_mut().unwrap();
        let peak = Peak { lifetimes: Some(lifetimes), ..Peak::default() };
        attribution.peaks.insert(GPU, peak);
        // The third line does not grow.
        attribution.survivors.pop();
        kept_through(&Evidence::of(&record, GPU).unwrap()).map(|at| at.line)
    }

    #[test]
    fn the_last_growing_block_of_the_last_iteration_has_the_line() {
        let of = |blocks: &[(usize, u64, Option<u64>)]| line(blocks, 0);
        assert_eq!(of(&[(0, 9, None), (1, 10, None)]), Some(2));
        assert_eq!(of(&[(1, 9, None), (0, 10, Some(15))]), Some(1), "freed after the iterations");
        assert_eq!(of(&[(0, 9, None), (1, 10, Some(14))]), Some(1), "the second is not kept");
        assert_eq!(of(&[(0, 9, None), (2, 10, None)]), Some(1), "the third does not grow");
        assert_eq!(of(&[(0, 7, None), (1, 15, None)]), None, "in no last iteration");
        assert_eq!(line(&[(0, 9, None), (1, 10, None)], 1), None, "a later block is left out");
    }

    #[test]
    fn the_order_of_blocks_on_the_host_is_not_known() {
        let mut record = Run::default().place(&[], steady(512)).record();
        let measured = record.spaces[&GPU].clone();
        record.spaces.insert(Space::Host, measured);
        assert_eq!(kept_through(&Evidence::of(&record, Space::Host).unwrap()), None);
    }
}
