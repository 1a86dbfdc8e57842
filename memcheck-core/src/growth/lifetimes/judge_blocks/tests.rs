//! The rates of regular growth, for series that are written out.

use super::*;

fn look(horizon: usize) -> Look {
    Look { horizon, quiet: horizon, is_last: false, measured: 10 }
}

#[test]
fn the_next_look_is_at_the_soonest_length_ahead_or_after_a_tenth() {
    assert_eq!(next_look(100, [120, 110]), 110);
    assert_eq!(next_look(100, [90, 120]), 120);
    assert_eq!(next_look(100, [100, 90]), 111);
}

/// The mean distance is 10 entries, so that an event is promised within 120.
#[test]
fn events_that_do_not_get_rarer_promise_another_within_twelve_mean_distances() {
    assert_eq!(steady_wait(&[5, 20, 30, 40, 45]), 120);
    assert_eq!(steady_wait(&[5, 15, 25, 35, 45]), 120);
    // The second half is longer than the first.
    assert_eq!(steady_wait(&[5, 15, 24, 35, 45]), 0);
    // Too few events have no mean distance.
    assert_eq!(steady_wait(&[5, 20, 30, 35]), 0);
    assert_eq!(steady_wait(&[]), 0);

    let look = Look { horizon: 160, quiet: 64, is_last: false, measured: 10 };
    let settled = |until| Settled {
        events: Events::from_entries([5, 20, 30, 40, 45]),
        until,
        steady_wait: 120,
    };
    assert!(!settled(165).is_quiet(&look));
    assert!(settled(166).is_quiet(&look));
}

#[test]
fn growth_goes_on_if_the_second_half_has_more_than_half_of_the_first() {
    let classify = |series| classify_open(series, 4, &look(6));
    assert_eq!(classify(&[4, 4, 2, 3]), Open::GoesOn);
    assert_eq!(classify(&[4, 4, 2, 2]), Open::Slows);
}

#[test]
fn one_or_two_events_are_not_growth_that_goes_on() {
    let last = Look { is_last: true, ..look(6) };
    for (series, open) in
        [([0, 0, 9, 0], Open::Rare), ([0, 9, 0, 9], Open::Rare), ([0, 9, 9, 9], Open::GoesOn)]
    {
        let events = positive(&series).count();
        assert_eq!(classify_open(&series, events, &last), open);
        // Further iterations can show a third one.
        assert_eq!(classify_open(&series, events, &look(6)), Open::GoesOn);
    }
}

/// The longest distance of all is three entries, and that of the last ten is two. They end with four
/// entries without an event, which is more than 1.5 times two.
#[test]
fn events_at_random_can_be_as_far_apart_as_ever_before() {
    let series = [8, 0, 0, 8, 8, 0, 8, 8, 0, 8, 8, 0, 0, 0, 0];
    assert!(continues_at_random(&series, &look(10)));
    assert!(!continues(&series, &look(10)), "a rhythm would have had its next event");
    let ended = [&series[..], &[0]].concat();
    assert!(!continues_at_random(&ended, &look(10)));
}

#[test]
fn growth_that_accelerates_has_the_mean_of_the_measured_iterations() {
    let of_measured = |series: &[i64], measured| {
        let look = Look { measured, ..look(6) };
        increasing_growth(series, Increment { length: 2, more: 2 }, &look)
    };
    let rate = |bytes, entries| Rate::new(bytes, entries, Certainty::Growing);
    let series: Vec<i64> = (0..11).map(|at| if at % 2 == 0 { 0 } else { at }).collect();
    let growth = of_measured(&series, 4);
    assert_eq!(growth.rate, rate(1 + 3, 4));
    assert_eq!(growth.pattern, PartPattern::Growing { period: 2, more: 2 });
    // If they add nothing, as many from the first one that does.
    let late = [vec![0; 6], series].concat();
    assert_eq!(of_measured(&late, 4).rate, rate(1 + 3, 4));
    assert_eq!(of_measured(&late, 7).rate, rate(1 + 3 + 5 + 7, 7));
    assert_eq!(of_measured(&late, 8).rate, rate(1, 8));
    assert_eq!(of_measured(&late[..8], 40).rate, rate(1, 8), "a short series");
}

#[test]
fn sizes_that_rise_each_time_accelerate_although_not_evenly() {
    let square = |at: i64| (at + 8) * (at + 8);
    let found = |series: &[i64], horizon| {
        let blocks = vec![1; series.len()];
        match judge_whole_series(series, &blocks, &look(horizon)) {
            Some(State::Grows { growth, is_whole: true }) => (growth[0].pattern, growth[0].rate),
            other => panic!("{other:?}"),
        }
    };
    let squares: Vec<i64> = (0..60).map(square).collect();
    let measured: i64 = (0..10).map(square).sum();
    let rate = Rate::new(measured as u128, 10, Certainty::Growing);
    assert_eq!(found(&squares, 20), (PartPattern::Growing { period: 1, more: 0 }, rate));
    let mut equal = squares;
    equal[50] = equal[49];
    assert_eq!(found(&equal, 20).0, PartPattern::Counted { period: 1, blocks: 1 });
    assert_eq!(found(&equal, 9).0, PartPattern::Growing { period: 1, more: 0 }, "later ones rise");
}

#[test]
fn blocks_in_a_rhythm_of_sizes_that_differ_have_a_mean_of_whole_periods() {
    let blocks: Vec<i64> = (0..40).map(|at| if at % 3 == 0 { 2 } else { 0 }).collect();
    let series: Vec<i64> =
        blocks.iter().enumerate().map(|(at, n)| n * (at * at % 17) as i64).collect();
    let State::Grows { growth, is_whole } =
        judge_whole_series(&series, &blocks, &look(20)).unwrap()
    else {
        panic!()
    };
    assert!(is_whole);
    assert_eq!(growth[0].pattern, PartPattern::Counted { period: 3, blocks: 2 });
    let bytes: i64 = series[10..].iter().sum();
    assert_eq!(growth[0].rate, Rate::new(bytes as u128, 30, Certainty::Counted));
    let (blocks, series) = ([&blocks[..], &[0]].concat(), [&series[..], &[0]].concat());
    let State::Grows { growth, .. } = judge_whole_series(&series, &blocks, &look(20)).unwrap()
    else {
        panic!()
    };
    let bytes: i64 = series[10..40].iter().sum();
    assert_eq!(growth[0].rate, Rate::new(bytes as u128, 30, Certainty::Counted));
}

#[test]
fn a_rhythm_below_other_events_is_found_with_these_events() {
    let every = |period: usize, bytes: i64| {
        move |at: usize| if at.is_multiple_of(period) { bytes } else { 0 }
    };
    let series: Vec<i64> =
        (0..80).map(|at| 4 + if [3, 9, 20].contains(&at) { 90 } else { 0 }).collect();
    let found = |series: &[i64]| match judge_regular(series, &[], &look(40)) {
        Some(State::Grows { growth, is_whole }) => {
            let rates: Vec<_> = growth.iter().map(|growth| growth.rate).collect();
            (rates, is_whole)
        }
        _ => (Vec::new(), false),
    };
    let exact = |bytes, entries| Rate::new(bytes, entries, Certainty::Exact);
    assert_eq!(found(&series), (vec![exact(4, 1)], true));
    let mut open = series.clone();
    open[60] += 90;
    assert_eq!(found(&open), (vec![exact(4, 1)], false));
    let both: Vec<i64> = (0..80).map(|at| every(2, 4)(at) + every(11, 9)(at)).collect();
    assert_eq!(found(&both), (vec![exact(2, 1), exact(9, 11)], true));
    assert_eq!(found(&[0; 80]), (Vec::new(), false));
}
