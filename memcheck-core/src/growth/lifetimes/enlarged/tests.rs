//! Chains of blocks that are written out.

use super::super::programs::{Program, ProgramBlock, Random, WARMUP};
use super::*;

/// The sizes of the blocks of each buffer or pool that is found, the largest first. `blocks` have
/// birth, death and size.
fn found(blocks: &[(u32, u32, u64)], iterations: u32, is_last: bool) -> Vec<Vec<u64>> {
    let mut program = Program::new(iterations);
    program.blocks = blocks
        .iter()
        .map(|&(born, died, size)| ProgramBlock {
            site: 0,
            size,
            born: Some(born + WARMUP),
            died: died.saturating_add(WARMUP),
        })
        .collect();
    let history = program.history(iterations + WARMUP);
    let kinds: Vec<&Kind> = history.kinds.iter().collect();
    let look = Look { horizon: 40, quiet: 30, is_last, measured: 10 };
    let buffers = enlarged(&history, &kinds, &look);
    buffers.iter().map(|found| found.kinds.iter().map(|kind| kind.size).collect()).collect()
}

const FOR_EVER: u32 = u32::MAX;

/// A buffer that is enlarged by half, with rounded sizes.
const BY_HALF: [(u32, u32, u64); 6] =
    [(9, 14, 90), (14, 21, 135), (21, 32, 202), (32, 48, 303), (48, 72, 454), (72, FOR_EVER, 681)];

const DOUBLED: [(u32, u32, u64); 5] =
    [(5, 10, 64), (10, 20, 128), (20, 40, 256), (40, 80, 512), (80, FOR_EVER, 1024)];

#[test]
fn a_buffer_is_a_chain_of_blocks_that_replace_each_other() {
    assert_eq!(found(&BY_HALF, 90, false), [vec![681, 454, 303, 202, 135, 90]]);
    assert_eq!(found(&DOUBLED, 90, false), [vec![1024, 512, 256, 128, 64]]);
    let both = [&BY_HALF[..], &DOUBLED[..]].concat();
    assert_eq!(found(&both, 90, false).len(), 2);
}

#[test]
fn a_chain_has_at_least_four_blocks() {
    assert_eq!(found(&BY_HALF[2..], 90, false).len(), 1);
    assert_eq!(found(&BY_HALF[3..], 90, false).len(), 0);
}

#[test]
fn a_block_that_dies_earlier_or_is_much_smaller_is_not_replaced() {
    let mut gap = BY_HALF;
    gap[3].1 -= 1;
    assert!(found(&gap, 90, false).is_empty());
    let mut uneven = BY_HALF;
    uneven[3].2 = 380;
    assert!(found(&uneven, 90, false).is_empty());
}

#[test]
fn a_pool_is_one_chain_of_live_chunks() {
    let pool = DOUBLED.map(|(born, _, size)| (born, FOR_EVER, size));
    assert_eq!(found(&pool, 90, false), [vec![1024, 512, 256, 128, 64]]);
    // Chunks that are not larger by exactly one factor are no pool.
    let rounded = BY_HALF.map(|(born, _, size)| (born, FOR_EVER, size));
    assert!(found(&rounded, 90, false).is_empty());
    // A larger chunk that was born earlier does not follow.
    let shrinks =
        [(5, FOR_EVER, 1024), (10, FOR_EVER, 512), (20, FOR_EVER, 256), (40, FOR_EVER, 128)];
    assert!(found(&shrinks, 90, false).is_empty());
    // Neither does one of the same iteration.
    let at_once = DOUBLED.map(|(.., size)| (5, FOR_EVER, size));
    assert!(found(&at_once, 20, false).is_empty());
}

#[test]
fn a_pool_is_not_looked_for_among_many_live_blocks() {
    let pool = DOUBLED.map(|(born, _, size)| (born, FOR_EVER, size));
    let mut random = Random(1);
    let others: Vec<_> = (0..MAX_CHUNKS as u32)
        .map(|at| (at, FOR_EVER, 1_000_003 * u64::from(random.within(2, 1 << 20))))
        .collect();
    let some = [&pool[..], &others[..MAX_CHUNKS - pool.len()]].concat();
    assert_eq!(found(&some, 90, false).len(), 1);
    let many = [&pool[..], &others[..=MAX_CHUNKS - pool.len()]].concat();
    assert!(found(&many, 90, false).is_empty());
}

#[test]
fn a_capacity_that_is_not_decided_is_open_until_the_last_look() {
    // The distances do not grow, so that the chain has no rate.
    let even: Vec<_> = BY_HALF
        .iter()
        .zip(0..)
        .map(|(&(.., size), at)| {
            let died = if at == 5 { FOR_EVER } else { 10 * at + 19 };
            (10 * at + 9, died, size)
        })
        .collect();
    assert_eq!(found(&even, 70, false).len(), 1);
    assert!(found(&even, 70, true).is_empty());
    // Decided growth does not depend on it.
    assert_eq!(found(&DOUBLED, 90, true).len(), 1);
    // A buffer that has stopped is none.
    assert!(found(&DOUBLED, 200, false).is_empty());
}
