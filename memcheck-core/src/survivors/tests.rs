//! From histories to figures, groups and patterns.

mod decided;

use super::*;
use crate::lifetimes::{Budget, Decision, History, Living, step};

/// Blocks that are live: call site or 0, size, iteration of birth, number.
type Block = (u32, u64, u32, u64);

fn living((site, size, born, count): Block) -> Living {
    Living { site: Some(site).filter(|&site| site > 0), size, born: Some(born), count }
}

/// Plays a program until it is decided. `live` returns the blocks that are live at the end
/// of an iteration.
fn play(live: impl Fn(u32) -> Vec<Block>) -> Grown {
    let budget = Budget::of(1_002);
    let mut history = History::new(2);
    let mut further = 12;
    loop {
        for _ in 0..further {
            let now = history.iterations();
            history.add(live(now).into_iter().map(living));
        }
        match step(&history, &budget) {
            Decision::More(more) => further = more,
            decision => return read(&history, &decision, 10),
        }
    }
}

/// Blocks of every iteration from `first` up to `now`, every `period`-th of them.
fn kept(site: u32, size: u64, (first, period): (u32, u32), now: u32) -> Vec<Block> {
    let births = (first..=now).step_by(period as usize);
    births.map(|born| (site, size, born, 1)).collect()
}

fn ring(site: u32, size: u64, length: u32, now: u32) -> Vec<Block> {
    (now.saturating_sub(length - 1)..=now).map(|born| (site, size, born, 1)).collect()
}

#[test]
fn a_leak_has_its_rate_its_blocks_and_its_pattern() {
    let grown = play(|now| kept(0, 4_096, (0, 1), now));
    assert_eq!(grown.bytes_per_iteration, 4_096);
    assert!(matches!(grown.growth, Growth::Found { whole: true, exact: true, .. }));
    let [group] = grown.by_size.as_slice() else { panic!("{grown:?}") };
    assert_eq!(
        (group.count(), group.bytes(), group.reading.pattern),
        (10, 40_960, Pattern::Steady)
    );
    let grown = play(|now| kept(0, 600, (2, 3), now));
    let reading = grown.by_size[0].reading;
    assert_eq!((reading.pattern, reading.period, reading.bytes), (Pattern::Periodic, 3, 600));
    assert_eq!(reading.bytes_per_iteration, 200);
}

#[test]
fn call_sites_share_the_figure_to_the_byte() {
    // A third of a byte more than 100, twice.
    let grown = play(|now| {
        [kept(1, 301, (0, 3), now), kept(2, 301, (1, 3), now), ring(3, 301, 12, now)].concat()
    });
    let shares: Vec<u64> =
        grown.by_site.values().map(|group| group.reading.bytes_per_iteration).collect();
    assert_eq!(shares.iter().sum::<u64>(), grown.bytes_per_iteration);
    assert_eq!((grown.bytes_per_iteration, shares), (201, vec![101, 100, 0]));
    assert_eq!(grown.by_site[&3].reading.pattern, Pattern::Replaced);
    assert!(grown.by_size.is_empty(), "{:?}", grown.by_size);
}

#[test]
fn blocks_that_do_not_grow_are_named_by_what_they_do() {
    let at_rest = |live: &dyn Fn(u32) -> Vec<Block>| {
        let grown = play(live);
        assert_eq!(grown.bytes_per_iteration, 0, "{grown:?}");
        assert!(matches!(grown.growth, Growth::Quiet { .. }), "{grown:?}");
        grown.by_size.iter().map(|group| group.reading.pattern).collect::<Vec<_>>()
    };
    assert_eq!(at_rest(&|now| ring(0, 8, 12, now)), [Pattern::Replaced]);
    assert_eq!(at_rest(&|now| ring(0, 8, 2, now)), [Pattern::LastKept]);
    let cache = |now: u32| kept(0, 8, (2, 1), now.min(7));
    assert_eq!(at_rest(&cache), [Pattern::Filled]);
    let once = |now: u32| if now >= 5 { vec![(0, 8, 5, 1)] } else { Vec::new() };
    assert_eq!(at_rest(&once), [Pattern::Once]);
    assert_eq!(at_rest(&|_| Vec::new()), []);
}

#[test]
fn a_reading_is_one_line_with_its_figures() {
    let of = |pattern, period, bytes, rate, last| Reading {
        pattern,
        bytes_per_iteration: rate,
        period,
        bytes,
        last,
        groups: 1,
    };
    for (reading, words) in [
        (of(Pattern::Steady, 1, 400, 400, 0), "steady, 400 B an iteration"),
        (of(Pattern::Periodic, 3, 600, 200, 0), "600 B in every 3rd iteration, 200 B an iteration"),
        (
            of(Pattern::Growing, 1, 64, 320, 0),
            "quadratic, 64 B more in every iteration than before, 320 B an iteration on average",
        ),
        (of(Pattern::Irregular, 1, 30, 30, 0), "in no regular order, 30 B an iteration on average"),
        (of(Pattern::Enlarged, 1, 64, 64, 0), "replaced by one larger by 64 B in every iteration"),
        (
            of(Pattern::Amortised, 1, 128, 3, 0),
            "enlarged again and again by a factor, last by 128 B: the content grows by about 3 B an iteration",
        ),
        (of(Pattern::Filled, 1, 1_600, 0, 4), "filled to 1.6 KiB and stopped after iteration 4"),
        (of(Pattern::LastKept, 1, 800, 0, 10), "kept from the last iterations only: 800 B"),
        (of(Pattern::Ratchet, 1, 50, 0, 3), "grows with the largest input seen, to 50 B"),
        (of(Pattern::Once, 1, 900, 0, 5), "once, 900 B in iteration 5"),
        (of(Pattern::Once, 1, 0, 0, 0), "nothing of the iterations survives"),
    ] {
        assert_eq!(reading.describe(), words);
    }
}

#[test]
fn a_group_of_several_readings_grows_by_all_of_them() {
    let reading = |pattern, rate| Reading {
        pattern,
        bytes_per_iteration: rate,
        period: 1,
        bytes: rate,
        last: 0,
        groups: 1,
    };
    let steady = reading(Pattern::Steady, 10);
    let joined = steady.beside(reading(Pattern::Steady, 5));
    assert_eq!(
        (joined.pattern, joined.bytes_per_iteration, joined.groups),
        (Pattern::Steady, 15, 1)
    );
    let joined = steady.beside(reading(Pattern::Enlarged, 5));
    assert_eq!((joined.pattern, joined.bytes_per_iteration), (Pattern::Irregular, 15));
    assert_eq!(steady.beside(reading(Pattern::Filled, 0)), steady);
}
