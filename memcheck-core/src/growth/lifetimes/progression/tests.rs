//! Blocks that are written out.

use super::super::programs::{Program, ProgramBlock, WARMUP};
use super::*;

/// The sizes of the blocks that rise evenly, in the order of their births. `blocks` have call site,
/// birth, death and size.
fn found(blocks: &[(u32, u32, u32, u64)]) -> Vec<u64> {
    const ITERATIONS: u32 = 60;
    let mut program = Program::new(ITERATIONS);
    program.blocks = blocks
        .iter()
        .map(|&(site, born, died, size)| ProgramBlock {
            site,
            size,
            born: Some(born + WARMUP),
            died: died.saturating_add(WARMUP),
        })
        .collect();
    let history = program.history(ITERATIONS);
    let kinds: Vec<&Kind> = history.kinds.iter().collect();
    let look = Look { horizon: 40, quiet: 30, is_last: false, measured: 10 };
    let found = progression(&history, &kinds, &look);
    found.map_or(Vec::new(), |(run, _)| run.iter().map(|kind| kind.size).collect())
}

const FOR_EVER: u32 = u32::MAX;

fn rising(site: u32, first: u64, more: u64) -> Vec<(u32, u32, u32, u64)> {
    (0..58).map(|at| (site, at, FOR_EVER, first + more * u64::from(at))).collect()
}

#[test]
fn blocks_that_rise_evenly_are_found_among_others() {
    let buffers = [(1, 3, 9, 200), (1, 9, 30, 400), (1, 30, FOR_EVER, 800), (1, 31, FOR_EVER, 7)];
    let sizes: Vec<u64> = (0..58).map(|at| 1_000 + 50 * at).collect();
    assert_eq!(found(&[rising(1, 1_000, 50), buffers.to_vec()].concat()), sizes);
    // Of two that rise, one is found first, and of another call site none belongs to it.
    let both = [rising(1, 1_000, 50), rising(1, 5_000, 70), rising(2, 1_025, 25)].concat();
    assert_eq!(found(&both).len(), 58);
}

#[test]
fn blocks_that_do_not_rise_evenly_or_have_stopped_are_not_found() {
    let mut stopped = rising(1, 1_000, 50);
    stopped.truncate(40);
    assert!(found(&stopped).is_empty());
    let mut died = rising(1, 1_000, 50);
    died[50].2 = 55;
    assert!(found(&died).is_empty());
    let square: Vec<_> = (0..58).map(|at| (1, at, FOR_EVER, u64::from(at * at) + 9)).collect();
    assert!(found(&square).is_empty());
}

#[test]
fn many_blocks_of_one_iteration_are_no_progression() {
    let most = |count: u64| {
        let blocks: Vec<_> = (0..count).flat_map(|at| rising(1, 1_000_000 * at + 8, 64)).collect();
        found(&blocks).len()
    };
    assert_eq!((most(MOST_AT_ONCE as u64), most(MOST_AT_ONCE as u64 + 1)), (58, 0));
}
