//! Regular and irregular series that are written out.

use super::*;

fn look(horizon: usize) -> Look {
    Look { horizon, quiet: horizon, is_last: false, measured: 10 }
}

fn repeated(period: &[i64], length: usize) -> Vec<i64> {
    period.iter().copied().cycle().take(length).collect()
}

fn found(series: &[i64]) -> Option<(usize, i128, bool)> {
    exact_period(series, &look(20)).map(|period| (period.length, period.sum, period.is_whole))
}

#[test]
fn a_period_is_exact_if_three_of_it_and_two_fifths_of_the_horizon_repeat() {
    // Each of eight values must equal the value one period before.
    assert_eq!(found(&[5; 9]), Some((1, 5, true)));
    assert_eq!(found(&[5; 8]), None);
    assert_eq!(found(&repeated(&[0, 0, 7], 12)), Some((3, 7, true)));
    assert_eq!(found(&repeated(&[0, 0, 7], 11)), None);
    assert_eq!(found(&repeated(&[4, 0, 3, 2, 0], 20)), Some((5, 9, true)));
    assert_eq!(found(&repeated(&[4, 0, 3, 2, 0], 19)), None);
    // Other events before it are no part of a period.
    let after_others = |entries: usize| {
        let others = vec![91, 82, 73, 64, 55, 46, 37, 28];
        [others, repeated(&[4, 0, 3, 2, 0], entries)].concat()
    };
    assert!(found(&after_others(20)).is_some_and(|(length, sum, _)| (length, sum) == (5, 9)));
    assert_eq!(found(&after_others(19)), None);
    let mut other = repeated(&[0, 0, 7], 30);
    other[20] += 1;
    assert_eq!(found(&other), None);
}

#[test]
fn a_period_that_does_not_grow_is_not_exact_growth() {
    assert_eq!(found(&[0; 20]), None);
    assert_eq!(found(&repeated(&[3, -3], 20)), None);
    assert_eq!(found(&repeated(&[3, -5], 20)), None);
}

#[test]
fn a_period_may_begin_late() {
    for late in [1, 4, 30] {
        let series = [vec![0; late], vec![5; 12]].concat();
        assert_eq!(found(&series), Some((1, 5, true)), "{late}");
        let series = [vec![0; late], repeated(&[0, 0, 7], 21)].concat();
        assert_eq!(found(&series), Some((3, 7, true)), "{late}");
    }
}

#[test]
fn events_of_one_period_are_no_increment() {
    let increment =
        |series: &[i64]| constant_increment(series, &look(20)).map(|found| found.length);
    // Each period has one more in one phase, and none in the others.
    let rising: Vec<i64> = (1..=4).flat_map(|value| [0, 0, value, 0, 0, 0, 0]).collect();
    assert_eq!(increment(&rising), Some(7));
    // Nothing for three periods, then three events.
    let filled = [vec![0; 21], vec![0, 5, 0, 5, 0, 5, 0]].concat();
    assert_eq!(increment(&filled), None);
}

#[test]
fn growth_that_gets_faster_late_is_not_whole() {
    // A list that is seldom flushed stays beside a leak that began at once.
    let faster = |after: usize| [vec![5; after], vec![10; 40]].concat();
    assert_eq!(found(&faster(20)), Some((1, 10, true)));
    assert_eq!(found(&faster(21)), Some((1, 5, false)));
    // The two rates can have other periods.
    let faster = [repeated(&[0, 0, 7], 30), vec![9; 40]].concat();
    assert_eq!(found(&faster), Some((3, 7, false)));
    let faster = [vec![4; 30], repeated(&[0, 0, 50], 60)].concat();
    assert_eq!(found(&faster), Some((1, 4, false)));
    // The rate counts, and not the sum: growth that got slower has the later rate.
    let before = |last: i64| {
        let period = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, last];
        [repeated(&period, 96), vec![9; 400]].concat()
    };
    assert_eq!(found(&before(8)), Some((12, 50, false)));
    assert_eq!(found(&before(700)), Some((1, 9, false)));
    // Events that do not repeat are no rate.
    let irregular =
        [vec![5, 0, 7, 0, 0, 1, 0, 4, 9, 0, 0, 2, 0, 0, 0, 3, 0, 1, 0, 6, 0, 8], vec![10; 40]];
    assert_eq!(found(&irregular.concat()), Some((1, 10, false)));
}

#[test]
fn events_before_a_period_must_have_ended_for_the_growth_to_be_whole() {
    let after = |entries: usize| [vec![0, 0, 0, 90], vec![0; 10], vec![5; entries]].concat();
    // The horizon has passed since the event in entry 3.
    assert_eq!(found(&after(10)), Some((1, 5, true)));
    assert_eq!(found(&after(9)), Some((1, 5, false)));
    // An entry of the period with more bytes than the period has is another event.
    let more = |entries: usize| [vec![5; 3], vec![9], vec![5; entries]].concat();
    assert_eq!(found(&more(19)), Some((1, 5, false)));
    assert_eq!(found(&more(20)), Some((1, 5, true)));
}

#[test]
fn a_period_that_paused_right_before_repeats_by_chance_unless_for_long() {
    let paused = |entries: usize| [vec![5; 10], vec![0; 3], vec![5; entries]].concat();
    // A repetition of four times the eight compared values outweighs the pause.
    assert_eq!(found(&paused(31)), None);
    assert_eq!(found(&paused(32)), Some((1, 5, true)));
    // Three periods of five are compared, which are more than eight values.
    let paused = |entries: usize| {
        let period = [0, 0, 0, 0, 7];
        [repeated(&period, 25), vec![0; 15], repeated(&period, entries)].concat()
    };
    assert_eq!(found(&paused(59)), None);
    assert_eq!(found(&paused(60)), Some((5, 7, true)));
    // Eight missing events are not a pause, so the growth has begun after them.
    let begun = |missing: usize| [vec![5; 10], vec![0; missing], vec![5; 20]].concat();
    assert_eq!(found(&begun(7)), None);
    assert_eq!(found(&begun(8)).map(|(length, sum, _)| (length, sum)), Some((1, 5)));
    let other =
        |missing: usize| [repeated(&[0, 7], 10), vec![0; missing], repeated(&[0, 7], 20)].concat();
    assert_eq!(found(&other(14)), None);
    assert!(found(&other(16)).is_some());
}

#[test]
fn a_series_that_paused_is_exact_a_horizon_after_the_pause() {
    let paused = |entries: usize| [vec![5; 10], vec![0; 3], vec![5; entries]].concat();
    let from = |series: &[i64]| exact_from(series, &look(20));
    assert_eq!(from(&paused(12)), Some(33));
    assert_eq!(from(&paused(19)), Some(33));
    assert_eq!(from(&paused(20)), None, "it has been exact for a horizon");
    assert_eq!(from(&paused(5)), None, "its end does not repeat");
    assert_eq!(from(&[0; 40]), None, "it does not grow");
}

fn summed(series: &[i64]) -> Option<(Vec<(usize, i128)>, bool)> {
    let terms = periodic_terms(series, &look(40))?;
    let is_whole = terms.iter().all(|term| term.is_whole);
    Some((terms.iter().map(|term| (term.length, term.sum)).collect(), is_whole))
}

/// The sum of terms of period and bytes. A term has its bytes in each multiple of its period.
fn sum_of(terms: &[(usize, i64)], length: usize) -> Vec<i64> {
    let sum_at =
        |at: usize| terms.iter().filter(|term| at.is_multiple_of(term.0)).map(|term| term.1).sum();
    (0..length).map(sum_at).collect()
}

#[test]
fn a_series_may_be_the_sum_of_up_to_three_periodic_terms() {
    for terms in [vec![(1, 4)], vec![(2, 3), (3, 5)], vec![(2, 3), (5, 9), (7, 1)]] {
        let expected: Vec<_> = terms.iter().map(|&(length, sum)| (length, sum.into())).collect();
        assert_eq!(summed(&sum_of(&terms, 70)), Some((expected, true)));
    }
    assert_eq!(summed(&sum_of(&[(2, 3), (3, 5), (5, 9), (7, 1)], 70)), None, "four");
    assert_eq!(summed(&[0; 70]), None);
    assert!(summed(&sum_of(&[(2, 3), (11, 5)], 44)).is_some());
    assert_eq!(summed(&sum_of(&[(2, 3), (11, 5)], 43)), None);
    let mut other = sum_of(&[(2, 3), (3, 5)], 70);
    other[61] += 1;
    assert_eq!(summed(&other), None);
}

#[test]
fn terms_that_began_late_are_whole_if_they_explain_earlier_events() {
    let end = sum_of(&[(2, 3), (3, 5)], 40);
    let after = |head: &[i64]| summed(&[head, &end].concat()).unwrap().1;
    assert!(after(&[0, 0, 0, 0, 0, 0]));
    assert!(after(&[3, 0, 3, 5, 0, 0]));
    assert!(after(&[8, 0, 0, 0, 0, 0]));
    assert!(!after(&[9, 0, 0, 0, 0, 0]));
    assert!(!after(&[0, 1, 0, 0, 0, 0]));
    assert!(!after(&[0, 0, 5, 0, 0, 0]));
}

#[test]
fn growth_by_a_constant_amount_is_quadratic() {
    let increment = |series: &[i64]| {
        constant_increment(series, &look(20)).map(|increment| (increment.length, increment.more))
    };
    let rising: Vec<i64> = (0..30).map(|at| 100 + 8 * at).collect();
    assert_eq!(increment(&rising), Some((1, 8)));
    assert_eq!((increment(&rising[..9]), increment(&rising[..8])), (Some((1, 8)), None));
    let in_turn = |length: i64| -> Vec<i64> {
        (0..length).map(|at| if at % 2 == 1 { 50 + 4 * at } else { 0 }).collect()
    };
    assert_eq!(increment(&in_turn(30)), Some((2, 8)));
    assert_eq!((increment(&in_turn(10)), increment(&in_turn(9))), (Some((2, 8)), None));
    // Two phases of three have 4 more than before, so that a period has 8 more.
    let two_phases: Vec<i64> = (0..36)
        .map(|at| if at % 3 == 0 { 0 } else { [9, 40][at % 3 - 1] + 4 * (at / 3) as i64 })
        .collect();
    assert_eq!(increment(&two_phases), Some((3, 8)));
    assert_eq!(increment(&[7; 30]), None);
    assert_eq!(increment(&rising.iter().rev().copied().collect::<Vec<_>>()), None, "it falls");
    let mut other = rising.clone();
    other[25] += 1;
    assert_eq!(increment(&other), None);
}

#[test]
fn growth_accelerates_if_each_period_has_more_than_the_one_before() {
    let squares: Vec<i64> = (0..40).map(|at| at * at).collect();
    assert!(accelerates(&squares, 1, &look(20)) && accelerates(&squares, 4, &look(20)));
    assert!(!accelerates(&squares[..19], 1, &look(20)), "less than a horizon");
    assert!(!accelerates(&squares, 6, &look(20)), "less than eight periods");
    assert!(!accelerates(&[5; 40], 1, &look(20)));
    let mut falls = squares;
    falls[30] = 0;
    assert!(!accelerates(&falls, 1, &look(20)) && accelerates(&falls, 1, &look(9)));
}

fn subtracted(mut series: Vec<i64>, horizon: usize) -> Option<(usize, i128, Vec<i64>)> {
    let period = subtract_regular_term(&mut series, &look(horizon))?;
    assert!(period.is_whole);
    Some((period.length, period.sum, series))
}

#[test]
fn a_regular_term_below_other_events_is_subtracted() {
    let with_events =
        |count: usize| -> Vec<i64> { (0..20).map(|at| if at < count { 104 } else { 4 }).collect() };
    let rest = [vec![100; 10], vec![0; 10]].concat();
    assert_eq!(subtracted(with_events(10), 20), Some((1, 4, rest)));
    assert_eq!(subtracted(with_events(11), 20), None);
    assert_eq!(subtracted(vec![0; 20], 20), None);
    let in_turn: Vec<i64> = (0..40).map(|at| [7, 0, 7, 3][at % 4]).collect();
    let rest = (0..40).map(|at| [0, 0, 0, 3][at % 4]).collect();
    assert_eq!(subtracted(in_turn.clone(), 40), Some((2, 7, rest)));
    assert_eq!(subtracted(in_turn, 15), None);
    let late = [vec![0, 2, 9, 4], vec![4; 20]].concat();
    let rest = [vec![0, 0, 5], vec![0; 21]].concat();
    assert_eq!(subtracted(late, 20), Some((1, 4, rest)));
}
