//! The measures of levels that are written out.

use super::*;

fn rising(length: i64, step: i64) -> Vec<i64> {
    (0..length).map(|at| step * at).collect()
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
