//! Levels with a bound and without one, written out.

use super::*;
use crate::growth::lifetimes::kind::Kind;
use crate::growth::lifetimes::programs::{Program, ProgramBlock, WARMUP};

fn look(horizon: usize) -> Look {
    Look { horizon, quiet: horizon, is_last: false, measured: 10 }
}

fn rising(length: i64, step: i64) -> Vec<i64> {
    (0..length).map(|at| step * at).collect()
}

#[test]
fn floors_that_only_rise_never_fall_and_are_higher_at_the_end() {
    assert!(only_rises(&rising(16, 1)));
    assert!(only_rises(&[0, 9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 9, 1, 9]));
    assert!(!only_rises(&[5; 16]));
    assert!(!only_rises(&[0, 1, 2, 3, 2, 5, 6, 7]), "it falls once");
    assert!(!only_rises(&[0, 0, 9, 9, 9, 9, 0, 0]), "it ends where it began");
}

#[test]
fn a_level_repeats_exactly_if_it_does_for_the_quiet_time_and_the_greatest_age() {
    let swinging =
        |length: usize| -> Vec<i64> { (0..length).map(|at| [1, 2, 3][at % 3]).collect() };
    let look = look(20);
    // 20 entries must each equal the entry three before.
    assert!(repeats_exactly(&swinging(23), 0, &look) && !repeats_exactly(&swinging(22), 0, &look));
    assert!(!repeats_exactly(&[7; 60], 0, &look), "it does not move");
    let mut once = swinging(60);
    once[50] += 1;
    assert!(!repeats_exactly(&once, 0, &look));
    // Blocks that live longer may show that it does not repeat.
    assert!(
        repeats_exactly(&swinging(33), 30, &look) && !repeats_exactly(&swinging(32), 30, &look)
    );
    // A period that is longer than the quiet time must be there twice.
    let long = |length: i64| -> Vec<i64> { (0..length).map(|at| (at % 30) * (at % 30)).collect() };
    assert!(repeats_exactly(&long(60), 0, &look) && !repeats_exactly(&long(59), 0, &look));
}

#[test]
fn a_level_is_quiet_if_it_has_no_record_for_the_quiet_time_and_does_not_rise_below_it() {
    let look = look(20);
    let quiet = |level: &[i64]| {
        let records = Events::from_entries(records(level).iter().map(|&(at, _)| at));
        is_quiet(level, &records, &look)
    };
    let after = |entries: usize| [vec![0, 90], vec![5; entries]].concat();
    assert!(quiet(&after(20)) && !quiet(&after(19)));
    assert!(!quiet(&[vec![0, 90], rising(30, 1)].concat()), "it rises to the record");
}

#[test]
fn a_number_rises_if_its_floor_does_from_each_window_to_the_next() {
    let rises = |live: &[i64], age| number_rises(live, age, &look(20));
    assert!(!rises(&[1, 2, 1, 2], 2));
    assert!(rises(&[1, 2, 1, 2], 3), "a window is shorter than a block lives");
    assert!(rises(&[1, 2, 2, 3], 2) && !rises(&[1, 1, 1, 2], 2));
    // A list that is emptied, and next to it a queue that gets longer.
    let list = [0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 0];
    assert!(!rises(&list, 4));
    let both: Vec<i64> = list.iter().zip(0..).map(|(list, queue)| list + queue / 2).collect();
    assert!(rises(&both, 4));
    assert!(!rises(&[1, 2, 1, 2], 0), "no block died");
    // A ring that is full needs no second window.
    let ring = |entries| [rising(30, 1), vec![30; entries]].concat();
    assert!(!rises(&ring(20), 30) && rises(&ring(19), 30));
}

/// Up and down by the number of entries, from 0.
fn swinging(entries: usize, period: usize) -> Vec<i64> {
    (0..entries).map(|at| at % period).map(|at| at.min(period - at) as i64).collect()
}

#[test]
fn a_level_stays_if_its_second_half_does() {
    let look = look(20);
    let above = |low: i64, level: Vec<i64>| -> Vec<i64> { level.iter().map(|l| low + l).collect() };
    let filling = [rising(40, 1), above(40, swinging(40, 4))].concat();
    assert!(!crosses_often(&filling, &look) && stays(&filling, &look));
    assert!(stays(&swinging(40, 4), &look) && !stays(&swinging(39, 4), &look), "too short");
    assert!(!stays(&rising(80, 1), &look) && !stays(&[7; 80], &look));
}

#[test]
fn a_level_counts_from_the_greatest_age_or_from_its_middle() {
    assert_eq!(filled(&[0, 1, 2, 3, 4, 5], 2), [2, 3, 4, 5]);
    assert_eq!(filled(&[0, 1, 2, 3, 4, 5], 4), [3, 4, 5]);
}

#[test]
fn what_falls_back_to_its_first_quarter_has_been_emptied() {
    let list = swinging(40, 10);
    let look = look(20);
    assert!(is_emptied(&list, &list, &look));
    let longer: Vec<i64> = list.iter().zip(0..).map(|(list, at)| list + at / 10).collect();
    assert!(!is_emptied(&longer, &list, &look), "bytes do not");
    assert!(!is_emptied(&list, &longer, &look), "blocks do not");
    assert!(!is_emptied(&list[..39], &list[..39], &look), "too short");
}

/// The group of blocks that are born in these measured iterations, die in others, and have this size.
fn group(entries: u32, blocks: &[(u32, u32, u64)]) -> KindGroup {
    let block = |&(born, died, size): &(u32, u32, u64)| ProgramBlock {
        site: 0,
        size,
        born: Some(WARMUP + born),
        died: died.saturating_add(WARMUP),
    };
    let program =
        Program { blocks: blocks.iter().map(block).collect(), ..Program::new(entries + WARMUP) };
    let history = program.history(entries + WARMUP);
    let kinds: Vec<&Kind> = history.kinds.iter().collect();
    KindGroup::new(&history, &kinds)
}

/// A block in each iteration, all of which die in every fifth.
fn flushed(entries: u32) -> Vec<(u32, u32, u64)> {
    (0..entries).map(|at| (at, at / 5 * 5 + 5, 8)).collect()
}

#[test]
fn a_group_is_emptied_if_all_that_lives_was_born_in_the_entry_or_stays() {
    let list = flushed(20);
    assert_eq!(group(20, &list).emptied(), [0, 5, 10, 15]);
    // A block that outlives all others has settled and does not count, but one that dies does.
    let with = |block| group(20, &[&list[..], &[block]].concat()).emptied();
    assert_eq!(with((2, u32::MAX, 8)), [0, 5, 10, 15]);
    assert_eq!(with((2, 12, 8)), [0, 15]);
    // A young block has not settled yet.
    assert_eq!(group(18, &[&list[..], &[(14, u32::MAX, 8)]].concat()).emptied(), [0, 5, 10]);
}

#[test]
fn a_group_is_emptied_again_if_it_was_three_times_and_is_not_overdue() {
    let look = look(10);
    let again = |blocks: &[(u32, u32, u64)], entries: u32| {
        is_emptied_again(&group(entries, blocks), entries as usize, &look)
    };
    // The greatest age rises for the last time in entry 5, and is quiet ten entries later.
    assert!(again(&flushed(16), 16) && !again(&flushed(15), 15));
    let sooner = |entries| {
        let quiet = Look { quiet: 4, ..look };
        is_emptied_again(&group(entries, &flushed(entries)), entries as usize, &quiet)
    };
    assert!(sooner(11) && !sooner(10), "it was emptied twice");
    let stops: Vec<_> = (20..40).map(|at| (at, at + 3, 8)).collect();
    let stops = [flushed(20), stops].concat();
    assert!(again(&stops, 25) && !again(&stops, 26), "it is not emptied any more");
    // Blocks that live longer each time, more blocks each time, and larger ones.
    let longer: Vec<_> = (0..9).map(|at| (at * at, (at + 1) * (at + 1), 8)).collect();
    assert!(!again(&longer, 80));
    let more: Vec<_> = (0..40).flat_map(|at| vec![(at, at + 1, 8); at as usize]).collect();
    assert!(!again(&more, 40));
    let larger: Vec<_> = (1..80).map(|at| (at, at + 1, at.into())).collect();
    let larger = [&[(0, u32::MAX, 100)], &larger[..]].concat();
    assert!(!again(&larger, 80));
}

#[test]
fn a_series_stays_below_its_record_if_its_births_do_not_rise() {
    let look = look(10);
    let below = |series: &[i64]| stays_below(series, 3.0, &look);
    let after = |entries: usize| [vec![0, 90], [4, 5].repeat(entries / 2)].concat();
    assert!(below(&after(10)) && !below(&after(8)), "a record is not overdue");
    assert!(!below(&[vec![90], rising(30, 1)].concat()), "it rises to the record");
    // What comes before the record does not count.
    assert!(below(&[rising(30, 1), [27, 28].repeat(10)].concat()));
    // Entries without births do not count.
    let rare: Vec<i64> = rising(60, 1).iter().map(|at| if at % 6 == 0 { *at } else { 0 }).collect();
    assert!(!below(&[vec![90], rare].concat()));
}

#[test]
fn the_largest_block_of_an_entry_was_born_in_it() {
    let of = |blocks: &[(u32, u32, u64)]| group(6, blocks).largest;
    assert_eq!(of(&[(1, 3, 8), (4, 6, 24), (4, 5, 16)]), Some(vec![0, 8, 0, 0, 24, 0]));
}

/// A ring of five blocks of which one is born in each iteration, of this size.
fn ring(size: impl Fn(u32) -> u64) -> KindGroup {
    let blocks: Vec<_> = (0..90).map(|at| (at, at + 5, size(at))).collect();
    group(90, &blocks)
}

#[test]
fn blocks_are_bounded_in_number_if_neither_their_number_nor_the_largest_rises() {
    let look = look(20);
    let size = |at: u32| u64::from(at * 7 % 11 + 1);
    assert!(is_bounded_in_number(&ring(size), &look));
    assert!(!is_bounded_in_number(&ring(|at| size(at) + u64::from(at)), &look), "larger");
    assert!(!is_bounded_in_number(&ring(|at| size(at) + u64::from(at / 9)), &look), "more bytes");
    let longer: Vec<_> = (0..90).map(|at| (at, at + 5 + at / 9, size(at))).collect();
    assert!(!is_bounded_in_number(&group(90, &longer), &look), "more blocks");
    let unknown = KindGroup { largest: None, ..ring(size) };
    assert!(!is_bounded_in_number(&unknown, &look));
}
