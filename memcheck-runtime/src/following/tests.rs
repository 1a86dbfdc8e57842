//! The iterations beyond the measured ones, and the time that a busy machine takes from them.

use std::cell::Cell;

use memcheck_core::device::Family;

use super::*;
use crate::clock::Reading;

thread_local! {
    static NOW: Cell<Option<Reading>> = const { Cell::new(None) };
}

fn read() -> Reading {
    NOW.get().unwrap_or_else(|| Reading { at: Instant::now(), waited: Duration::ZERO })
}

/// One iteration runs for `runs` and waits for a processor for `waits`.
#[derive(Debug, Clone, Copy)]
struct Pace {
    runs: Duration,
    waits: Duration,
}

/// A program that keeps a block of 64 KiB in each iteration from `first` on.
fn follow(reach: Reach, first: u32, pace: Pace) -> (Grown, u32) {
    NOW.set(Some(read()));
    let mut following = Following::new(Space::Host, reach, &Limits::resolve(Family::Cpu, []));
    following.clock = Clock::with(read);
    following.start();
    let mut iterations = 12;
    while iterations > 0 {
        for _ in 0..iterations {
            let Reading { at, waited } = read();
            let at = at + pace.runs + pace.waits;
            NOW.set(Some(Reading { at, waited: waited + pace.waits }));
            let history = following.histories.get_mut(&Space::Host).expect("the judged space");
            let born = history.iterations();
            let living = Living { site: None, size: 65_536, born: Some(born), count: 1 };
            history.advance((born >= first).then_some(living), []);
        }
        iterations = following.further_iterations();
    }
    NOW.set(None);
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
