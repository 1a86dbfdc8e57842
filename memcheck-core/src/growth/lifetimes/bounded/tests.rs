//! Levels with a bound and without one, written out.

use super::*;

fn look(horizon: usize) -> Look {
    Look { horizon, quiet: horizon, is_last: false }
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
