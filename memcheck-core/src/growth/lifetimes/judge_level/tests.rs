//! The measures of a level, for levels that are written out.

use super::*;

fn look(horizon: usize) -> Look {
    Look { horizon, quiet: horizon, is_last: false }
}

fn rising(length: i64, step: i64) -> Vec<i64> {
    (0..length).map(|at| step * at).collect()
}

#[test]
fn differences_are_the_changes_from_entry_to_entry() {
    assert_eq!(differences(&[5, 7, 7, 4]), [0, 2, 0, -3]);
    assert!(differences(&[]).is_empty());
}

#[test]
fn the_windows_are_eight_of_one_length_at_the_end() {
    let windows_of = |length: i64| -> Vec<Vec<i64>> {
        windows(&rising(length, 1), WINDOWS).map(<[i64]>::to_vec).collect()
    };
    let pairs: Vec<Vec<i64>> = (0..8).map(|at| vec![3 + 2 * at, 4 + 2 * at]).collect();
    assert_eq!(windows_of(19), pairs);
    assert_eq!(windows_of(3), [[0], [1], [2]]);
    assert_eq!((range(&[3, 1, 2]), mean(&[3, 1, 5])), ((1, 3), 3.0));
}

#[test]
fn a_slope_is_the_mean_rise_from_the_first_window_to_the_last() {
    let rate = |bytes, entries| Rate::new(bytes, entries, Certainty::Mean);
    assert_eq!(slope(&rising(16, 10)), rate(10, 1));
    assert_eq!(slope(&rising(19, 10)), rate(10, 1), "of the last 16");
    assert_eq!(slope(&rising(3, 10)), rate(10, 1));
    assert_eq!(slope(&[[0; 8], [3; 8]].concat()), rate(3, 14));
    assert_eq!(slope(&[5; 16]), rate(0, 1));
    assert_eq!(slope(&rising(16, -10)), rate(0, 1), "it falls");
}

#[test]
fn a_trend_is_a_slope_in_standard_errors() {
    let is = |level: &[i64], errors: f64| (trend(level) - errors).abs() < 1e-9;
    // By textbook formulas, with the correction for correlated residues of an autoregressive
    // series.
    assert!(is(&[2, 1, 4, 3, 6, 5, 8, 7], 5.203_364_296_299_078));
    assert!(is(&[1, 2, 4, 6, 7, 7, 6, 6], 2.023_406_634_708_561_7));
    assert!(is(&[7, 6, 6, 4, 3, 3, 1, 2], -7.859_052_479_933_758));
    assert!(is(&[0, 0, 0, 0, 0, 9, 9, 9], 3.386_825_687_172_89));
    assert_eq!(trend(&[1, 2, 3, 4]), f64::INFINITY);
    assert_eq!((trend(&[4, 3, 2, 1]), trend(&[7; 9]), trend(&[1, 2, 3])), (0.0, 0.0, 0.0));
}

#[test]
fn crossings_count_how_often_a_level_passes_its_median() {
    assert_eq!(crossings(&[1, 5, 3, 1, 5, 3]), 3);
    assert_eq!(crossings(&[1, 2, 3, 4, 5]), 1);
    assert_eq!(crossings(&[1, 9, 1, 9, 5]), 3);
    assert_eq!((crossings(&[7; 9]), crossings(&[])), (0, 0));
}

#[test]
fn quarters_rise_if_each_is_above_the_last_at_both_ends() {
    assert!(quarters_rise(&rising(8, 1)));
    assert!(quarters_rise(&[0, 9, 1, 10, 2, 11, 3, 12]));
    assert!(!quarters_rise(&[0, 1, 2, 3, 2, 5, 6, 7]), "the same lowest level");
    assert!(!quarters_rise(&[0, 1, 2, 5, 4, 5, 6, 7]), "the same highest level");
    assert!(!quarters_rise(&[0, 1, 2, 3, 4, 5, 4, 7]), "not in the last quarter");
    assert!(!quarters_rise(&[0, 1, 0, 3, 4, 5, 6, 7]), "not in the first quarter");
    assert!(!quarters_rise(&rising(8, -1)));
    assert!(!quarters_rise(&rising(3, 1)), "too short");
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
fn a_rise_goes_on_if_the_second_half_has_more_than_half_of_that_of_the_first() {
    assert!(keeps_rising(&rising(8, 1)));
    assert!(keeps_rising(&[0, 2, 4, 6, 6, 7, 8, 10]));
    assert!(!keeps_rising(&[0, 2, 4, 6, 6, 7, 8, 9]));
    assert!(!keeps_rising(&rising(7, 1)), "too short");
}

#[test]
fn a_climb_is_eight_windows_of_which_each_is_above_the_last() {
    let look = look(80);
    let is_climb = |level: &[i64]| climbs(level, &look);
    let steps = |levels: [i64; 8]| -> Vec<i64> {
        levels.iter().flat_map(|level| (0..16).map(move |at| level + at % 4)).collect()
    };
    let even = [0, 20, 40, 60, 80, 100, 120, 140];
    assert!(is_climb(&rising(128, 1)));
    assert!(climbs(&steps(even), &Look { is_last: true, ..look }));
    assert!(!is_climb(&rising(128, -1)) && !is_climb(&[5; 128]));
    // The second half must rise by three quarters of the rise of the first.
    let slower = |last: i64| {
        climbs(&steps([0, 20, 40, 60, 61, 62, 63, last]), &Look { is_last: true, ..look })
    };
    assert!(slower(106) && !slower(105));
    for equal in [60, 59] {
        let mut levels = even;
        levels[4] = equal;
        assert!(!climbs(&steps(levels), &Look { is_last: true, ..look }), "{equal}");
    }
    // The first four fifths must climb too, and must be as long as the horizon.
    assert!(!is_climb(&[vec![0; 100], rising(28, 1)].concat()));
    assert!(is_climb(&rising(100, 1)) && !is_climb(&rising(99, 1)));
    let at_the_end = Look { is_last: true, ..look };
    assert!(climbs(&rising(80, 1), &at_the_end) && !climbs(&rising(79, 1), &at_the_end));
    let short = Look { horizon: 10, ..at_the_end };
    assert!(climbs(&rising(64, 1), &short) && !climbs(&rising(63, 1), &short));
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
fn an_irregular_level_that_never_falls_has_a_mean_before_the_last_look() {
    let (mut state, mut live) = (1_u64, 0);
    let mut level = Vec::new();
    for _ in 0..400 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // 0 to 3 blocks of 8 B.
        live += i64::try_from(state >> 62).unwrap() * 8;
        level.push(live);
    }
    for is_last in [false, true] {
        let growth = floor_growth(&level, &Look { is_last, ..look(64) });
        assert_eq!(growth.map(|growth| growth.pattern), Some(PartPattern::Mean), "{is_last}");
    }
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
