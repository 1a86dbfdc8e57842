//! Growth of runs that ended early.

use super::*;

/// The growth after 29 iterations in which memory may have risen.
fn rising(live: impl Fn(u32) -> Vec<Block>) -> Option<Grown> {
    read_rising(&after(29, live), 10)
}

/// A square of floats in each iteration, each larger than the one before.
fn squares(now: u32) -> Vec<Block> {
    let side = |at: u32| 64 + 16 * u64::from(at);
    (0..=now).map(|at| (1, 4 * side(at) * side(at), at, 1)).collect()
}

#[test]
fn what_rises_in_every_iteration_grows_by_its_smallest_step() {
    let grown = rising(squares).expect("it rises");
    assert_eq!(grown.bytes_per_iteration, 4 * 112 * 112);
    assert_eq!(grown.growth, Growth::Found { whole: false, exact: false, iterations: 29 });
    let reading = grown.by_site[&1].reading;
    assert_eq!(reading.describe(), "rises in every iteration, by at least 50,176 B (49.0 KiB)");
}

#[test]
fn two_series_share_the_smallest_step_of_both() {
    // A buffer that is replaced by one larger by 896 B, beside blocks of growing sizes.
    let both = |now: u32| {
        let mut live: Vec<Block> =
            (0..=now).map(|at| (1, 4 * u64::from(7 * at + 4), at, 1)).collect();
        live.push((2, 896 * u64::from(now + 1), now, 1));
        live
    };
    let grown = rising(both).expect("it rises");
    assert_eq!(grown.bytes_per_iteration, 896 + 100);
    let rates = [1, 2].map(|site| grown.by_site[&site].reading.bytes_per_iteration);
    assert!(rates.iter().all(|&rate| rate > 0), "{rates:?}");
}

#[test]
fn a_call_site_that_rises_beside_memory_that_falls_grows_alone() {
    let beside_a_list = |now: u32| {
        let mut live = squares(now);
        live.extend((now / 8 * 8..=now).map(|at| (2, 10 << 20, at, 1)));
        live
    };
    let grown = rising(beside_a_list).expect("one site rises");
    assert_eq!(grown.bytes_per_iteration, 4 * 112 * 112);
    assert!(!grown.by_site[&2].reading.grows());
}

#[test]
fn what_rests_or_falls_once_does_not_grow() {
    assert_eq!(rising(|now| squares(now.min(20))), None);
    assert_eq!(rising(|now| squares(if now == 20 { 3 } else { now })), None);
    assert_eq!(read_rising(&after(6, squares), 10), None, "too few steps");
    assert_eq!(read_rising(&after(7, |now| squares(now.min(5))), 5), None);
}

#[test]
fn all_steps_of_a_short_screen_are_enough() {
    for screen in [3, 4, 5] {
        let grown = read_rising(&after(2 + screen, squares), screen as usize).expect("it rises");
        assert_eq!(grown.bytes_per_iteration, 4 * 112 * 112, "{screen}");
    }
    assert_eq!(read_rising(&after(4, squares), 2), None, "one step is no series");
}
