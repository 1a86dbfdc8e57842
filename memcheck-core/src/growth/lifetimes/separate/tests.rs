//! Kinds whose blocks are written out.

use super::super::{History, Living};
use super::*;

/// The births, the live blocks and the level of each separated kind of one kind with these blocks, as
/// birth and death, after ten iterations. The first is born in iteration 0 or `older` blocks are of the
/// set-up, so that all series begin there.
fn parts(blocks: &[(u32, u32)], older: u64) -> Vec<(Vec<u64>, Vec<u64>, Vec<u64>)> {
    let mut history = History::new(0);
    for now in 0..10 {
        let living = |born, count| Living { site: None, size: 8, born, count };
        let is_live = |&&(born, died): &&(u32, u32)| born <= now && now < died;
        let live = blocks.iter().filter(is_live).map(|&(born, _)| living(Some(born), 1));
        history.add(live.chain([living(None, older)]));
    }
    let parts = separate(&history.kinds[0]).into_iter();
    parts.map(|part| (part.blocks.births, part.blocks.left, part.blocks.live)).collect()
}

fn level(from: u32, until: u32) -> Vec<u64> {
    (0..10).map(|now| u64::from((from..until).contains(&now))).collect()
}

const FOR_EVER: u32 = u32::MAX;

#[test]
fn a_block_that_stays_is_separated_from_one_that_died() {
    let expected = [
        (vec![0, 0, 0, 1], vec![0, 0, 0, 1], level(3, FOR_EVER)),
        (vec![1, 0, 0, 0], vec![0; 4], level(0, 7)),
    ];
    assert_eq!(parts(&[(0, 7), (3, FOR_EVER)], 0), expected);
    // Both were born in the same iteration.
    let same = [(vec![1], vec![1], level(0, FOR_EVER)), (vec![1], vec![0], level(0, 7))];
    assert_eq!(parts(&[(0, 7), (0, FOR_EVER)], 0), same);
}

#[test]
fn blocks_of_the_set_up_and_blocks_that_died_are_one_kind_each() {
    let separated = parts(&[(1, 4), (3, 6), (8, FOR_EVER)], 2);
    let levels: Vec<Vec<u64>> = separated.iter().map(|(.., live)| live.clone()).collect();
    let died = level(1, 4).iter().zip(level(3, 6)).map(|(a, b)| a + b).collect();
    assert_eq!(levels, [level(8, FOR_EVER), died, vec![2; 10]]);
    let births = |at: usize| separated[at].0.iter().sum::<u64>();
    assert_eq!((births(0), births(1), births(2)), (1, 2, 0));
}

#[test]
fn blocks_that_are_alike_or_have_a_rhythm_are_not_separated() {
    assert!(parts(&[(2, FOR_EVER)], 0).is_empty());
    assert!(parts(&[(2, 5)], 0).is_empty());
    assert!(parts(&[(2, 5), (4, 6)], 0).is_empty());
    let births = |count: u32| (0..count).map(|at| (at, FOR_EVER)).collect::<Vec<_>>();
    assert_eq!(parts(&births(MOST_BIRTHS as u32), 0).len(), MOST_BIRTHS);
    assert!(parts(&births(MOST_BIRTHS as u32 + 1), 0).is_empty());
}
