//! The measures of a level, for levels that are written out.

use super::*;

fn look(horizon: usize) -> Look {
    Look { horizon, quiet: horizon, is_last: false, measured: 10 }
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
