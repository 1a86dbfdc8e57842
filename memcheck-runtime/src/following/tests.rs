//! The iterations beyond the measured ones, and the time that a busy machine takes from them.

use memcheck_core::growth::survivors::{Grown, Growth};
use std::cell::Cell;
use std::time::Instant;

use memcheck_core::device::Family;
use memcheck_core::limits::{Layer, Source};
use memcheck_core::size::Size;

use super::*;
use crate::clock::Sources;

thread_local! {
    static BEGAN: Instant = Instant::now();
    /// The times of the simulated clock.
    static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A clock that only the iterations advance, so that the speed of the machine does not matter.
const SIMULATED: Sources =
    Sources { now: || BEGAN.with(|began| *began + PASSED.get()), waited: || WAITED.get() };

/// One iteration runs for `runs` and waits for a processor for `waits`.
#[derive(Debug, Clone, Copy)]
struct Pace {
    runs: Duration,
    waits: Duration,
}

/// A program that keeps a block of 64 KiB in each iteration from `first` on.
fn follow(reach: Reach, first: u32, pace: Pace) -> (Grown, u32) {
    follow_with(Layer::default(), 65_536, u32::MAX, (reach, first, pace))
}

/// The same with limits, other blocks, and each block freed after `age` iterations.
fn follow_with(
    layer: Layer,
    size: u64,
    age: u32,
    (reach, first, pace): (Reach, u32, Pace),
) -> (Grown, u32) {
    let limits = Limits::resolve(Family::Cpu, [(Source::Attribute, &layer)]);
    let mut following = Following::new(Space::Host, reach, &limits);
    following.clock = Clock::with(SIMULATED);
    following.start();
    let mut iterations = 12;
    while iterations > 0 {
        for _ in 0..iterations {
            PASSED.set(PASSED.get() + pace.runs + pace.waits);
            WAITED.set(WAITED.get() + pace.waits);
            let born = following.iterations();
            let living = |born| Living { site: None, size, born: Some(born), count: 1 };
            let died = born.checked_sub(age).filter(|&born| born >= first);
            for (&space, history) in &mut following.histories {
                let (came, gone) = ((born >= first).then_some(born), died);
                let of_space =
                    |born: Option<u32>| born.filter(|_| space == Space::Host).map(living);
                history.advance(of_space(came), of_space(gone));
            }
        }
        iterations = following.further_iterations();
    }
    (following.growth().remove(&Space::Host).expect("its growth"), following.iterations())
}

const IDLE: Pace = Pace { runs: Duration::from_micros(1_500), waits: Duration::ZERO };
/// Three other programs compete for the processor.
const BUSY: Pace = Pace { waits: Duration::from_micros(4_500), ..IDLE };
/// The horizon would take 0.3 s.
const SLOW: Pace = Pace { runs: Duration::from_millis(6), waits: Duration::ZERO };

#[test]
fn a_busy_machine_does_not_change_what_the_horizon_shows() {
    for first in [u32::MAX, 20] {
        let (idle, busy) =
            (follow(Reach::Horizon, first, IDLE), follow(Reach::Horizon, first, BUSY));
        assert_eq!(idle, busy, "{first}");
        assert_eq!(idle.1, 67, "{first}");
    }
    // The leak begins after the measured iterations, so that a longer run must decide.
    assert_eq!(follow(Reach::Horizon, 20, BUSY).0.growth, Growth::Unknown);
}

#[test]
fn a_test_that_is_too_slow_for_the_horizon_has_the_same_figure() {
    let (grown, iterations) = follow(Reach::Horizon, u32::MAX, SLOW);
    assert_eq!((grown.growth, iterations), (Growth::Quiet { iterations: 10 }, 12));
    let (whole, iterations) = follow(Reach::Horizon, u32::MAX, IDLE);
    assert_eq!((whole.growth, iterations), (Growth::Quiet { iterations: 65 }, 67));
    assert_eq!(grown.bytes_per_iteration, whole.bytes_per_iteration);
}

#[test]
fn a_busy_machine_does_not_change_a_decision() {
    // Ten seconds are enough for the decision, but forty are not at the pace of the busy machine.
    let idle = Pace { runs: Duration::from_millis(50), waits: Duration::ZERO };
    let busy = Pace { waits: Duration::from_millis(150), ..idle };
    let (decided, iterations) = follow(Reach::Decision, 2, idle);
    assert!(matches!(decided.growth, Growth::Found { whole: true, exact: true, .. }));
    assert_eq!(follow(Reach::Decision, 2, busy), (decided, iterations));
}

const FAST: Pace = Pace { runs: Duration::from_micros(10), waits: Duration::ZERO };

#[test]
fn a_ring_that_is_longer_than_the_horizon_is_followed_if_there_are_time_and_memory() {
    let ring = |size, pace| follow_with(Layer::default(), size, 500, (Reach::Decision, 0, pace));
    for (size, pace) in [(4_096, FAST), (1 << 20, FAST), (4_096, SLOW)] {
        let (grown, iterations) = ring(size, pace);
        assert!(matches!(grown.growth, Growth::Quiet { .. }), "{grown:?}");
        assert!(iterations > 500, "{iterations}");
    }
    // It would take more than 10 s, or 1.6 GiB.
    let slower = Pace { runs: Duration::from_millis(15), ..SLOW };
    for (size, pace) in [(4_096, slower), (2 << 20, FAST)] {
        let (grown, iterations) = ring(size, pace);
        assert!(matches!(grown.growth, Growth::Found { exact: true, .. }), "{grown:?}");
        assert_eq!(iterations, 165);
    }
    let (grown, iterations) = follow(Reach::Decision, 0, FAST);
    assert!(matches!(grown.growth, Growth::Found { whole: true, exact: true, .. }), "{grown:?}");
    assert_eq!((iterations, grown.bytes_per_iteration), (1_002, 65_536));
}

#[test]
fn a_least_time_is_kept_although_nothing_grows() {
    let layer = Layer { min_time: Some(Duration::from_millis(50)), ..Layer::default() };
    for (reach, first, age) in [(Reach::Decision, 0, 20), (Reach::Horizon, u32::MAX, 20)] {
        let (grown, iterations) = follow_with(layer.clone(), 64, age, (reach, first, FAST));
        assert!(matches!(grown.growth, Growth::Quiet { .. }), "{grown:?}");
        // 5,000 of 10 us follow the 12 measured ones.
        assert_eq!(iterations, 5_012);
    }
}

/// True if a soak of a test on `own` ends because `space` grows by 4,096 bytes per iteration.
fn ends_a_soak(own: Space, space: Space, layer: &Layer) -> bool {
    let family = if own.is_device() { Family::Cuda } else { Family::Cpu };
    let limits = Limits::resolve(family, [(Source::Attribute, layer)]);
    let reach = Reach::Soak(Duration::from_secs(60));
    let mut following = Following::new(own, reach, &limits);
    for born in 0..1_000 {
        for (&of, history) in &mut following.histories {
            let living = Living { site: None, size: 4_096, born: Some(born), count: 1 };
            history.advance((of == space).then_some(living), []);
        }
        if let Some(resident) = &mut following.resident {
            let grown = if space == Space::Process { u64::from(born) * 4_096 } else { 0 };
            resident.add((1 << 20) + grown);
        }
    }
    following.exceeds_growth(1_000)
}

#[test]
fn a_soak_ends_if_a_space_grows_by_more_than_the_limit_of_that_space() {
    let of_host = |max_host_growth| Layer { max_host_growth, ..Layer::default() };
    let of_c = |max_c_growth| Layer { max_c_growth, ..Layer::default() };
    let of_process = |max_rss_growth| Layer { max_rss_growth, ..Layer::default() };
    let (gpu, above, at) = (Space::Cuda(0), Some(Size(4_095)), Some(Size(4_096)));
    for (own, space, limited) in [
        (Space::Host, Space::CHeap, &of_c as &dyn Fn(Option<Size>) -> Layer),
        (Space::Host, Space::Host, &of_host),
        (Space::Host, Space::Process, &of_process),
        (gpu, Space::CHeap, &of_c),
        (gpu, Space::Host, &of_host),
    ] {
        for max_growth in [Some(Size(0)), Some(Size(1 << 20))] {
            let ends = |limit| ends_a_soak(own, space, &Layer { max_growth, ..limited(limit) });
            assert_eq!((ends(above), ends(at)), (true, false), "{space} in a test on {own}");
        }
    }
    let max_growth = |max_growth| Layer { max_growth, ..Layer::default() };
    assert_eq!([above, at].map(|it| ends_a_soak(gpu, gpu, &max_growth(it))), [true, false]);
    // No limit judges the growth of the host in a test on a GPU.
    let only_peak = Layer { max_host_peak: Some(Size(1)), ..max_growth(Some(Size(0))) };
    assert!(!ends_a_soak(gpu, Space::Host, &only_peak));
}
