//! Programs whose blocks live for a time, with a leak beside them or in them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use super::super::programs::Random;
use super::super::{Budget, Decision, History, Living, step};
use super::caches::run_with_a_clock;

/// The time for which an entry of a cache lives, in microseconds.
const TTL: u64 = 50_000;

const SIZE: u64 = 4_096;

/// A run of 4,000 iterations of 100 µs. In each, a block is born that lives for `lives(born)`
/// microseconds, or for ever.
fn run(mut lives: impl FnMut(u32) -> Option<u64>) -> Decision {
    const ITERATIONS: u32 = 4_000;
    let mut history = History::new(2);
    let mut deaths = BTreeMap::<u64, Vec<Living>>::new();
    for at in 0..ITERATIONS {
        let time = u64::from(at) * 100;
        let block = Living { site: Some(1), size: SIZE, born: Some(at), count: 1 };
        let later = deaths.split_off(&time);
        let gone = std::mem::replace(&mut deaths, later).into_values().flatten();
        history.set_time(Duration::from_micros(time));
        history.advance([block], gone);
        if let Some(lives) = lives(at) {
            deaths.entry(time + lives).or_default().push(block);
        }
    }
    step(&history, &Budget::of(ITERATIONS))
}

/// The deaths of a queue that one worker empties, who takes so many microseconds for a block.
fn worker(takes: u64) -> impl Fn(u64, u64) -> bool {
    let idle = Cell::new(0);
    move |born, now| {
        let done = idle.get().max(born) + takes;
        let is_done = now >= done;
        if is_done {
            idle.set(done);
        }
        is_done
    }
}

#[test]
fn a_backlog_of_bursts_is_found() {
    // Iterations take 136 µs on average, and 76 µs at the end: 20 blocks come in 50 of them.
    let bursts = |at: u32| if at.is_multiple_of(50) { 20 } else { 0 };
    for (takes, grows) in [(100, false), (330, true), (420, true)] {
        let decision = run_with_a_clock(true, bursts, worker(takes));
        assert_eq!(!matches!(decision, Decision::Clean { .. }), grows, "{takes}: {decision:?}");
    }
}

#[test]
fn a_wait_that_gets_longer_slowly_is_found() {
    for percent in [1, 2, 5, 10] {
        let waits = |born: u64| TTL + born * percent / 100;
        let decision = run_with_a_clock(true, |_| 1, |born, now| now - born > waits(born));
        assert!(matches!(decision, Decision::Leak(_)), "{percent} %: {decision:?}");
    }
}

#[test]
fn entries_that_a_cache_forgets_to_remove_are_found() {
    assert!(matches!(run(|_| Some(TTL)), Decision::Clean { .. }));
    for every in [2, 8, 16] {
        let decision = run(|at| (!at.is_multiple_of(every)).then_some(TTL));
        let Decision::Leak(leak) = &decision else { panic!("{every}: {decision:?}") };
        assert_eq!(leak.rate.rounded(), SIZE / u64::from(every), "{every}: {decision:?}");
    }
}

#[test]
fn entries_that_are_refreshed_are_no_leak() {
    // Each is read again with this probability before it expires, and then lives as long again.
    for again in [0.2, 0.5] {
        let mut random = Random(3);
        let decision = run(|_| {
            let times = (1..).take_while(|&times| times == 1 || random.chance(again)).last();
            times.map(|times| times * TTL / 10)
        });
        assert!(!matches!(decision, Decision::Leak(_)), "{again}: {decision:?}");
    }
}
