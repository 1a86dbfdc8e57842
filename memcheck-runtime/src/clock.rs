//! A clock that leaves out the time for which a thread was ready to run and had no processor. How
//! long a test is followed therefore hardly depends on the other programs of the machine.

use std::time::{Duration, Instant};

use crate::os;

/// The greatest share of the time that is left out, so that the real time is bounded too: three of
/// four parts.
const MOST_WAITED: (u32, u32) = (3, 4);

/// A clock of the thread that starts it. No other thread may read it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    sources: Sources,
    began: Instant,
    waited_before: Duration,
}

/// Where a clock reads its times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources {
    pub(crate) now: fn() -> Instant,
    /// The time so far for which the thread waited for a processor.
    pub(crate) waited: fn() -> Duration,
}

impl Clock {
    /// Starts the clock. The caller must be quiet.
    pub(crate) fn start() -> Self {
        Self::with(Sources { now: Instant::now, waited: || os::waited().unwrap_or_default() })
    }

    pub(crate) fn with(sources: Sources) -> Self {
        Self { sources, began: (sources.now)(), waited_before: (sources.waited)() }
    }

    /// The clock starts again, with the same sources.
    pub(crate) fn restart(&self) -> Self {
        Self::with(self.sources)
    }

    /// The time since the start, without the time for which the thread waited for a processor. The
    /// caller must be quiet.
    pub(crate) fn elapsed(&self) -> Duration {
        let all = self.real_elapsed();
        let waited = (self.sources.waited)().saturating_sub(self.waited_before);
        let (part, of) = MOST_WAITED;
        all - waited.min(all / of * part)
    }

    /// The time since the start, also that without a processor.
    pub(crate) fn real_elapsed(&self) -> Duration {
        (self.sources.now)().saturating_duration_since(self.began)
    }

    /// The real time from the start of an earlier clock to that of this one.
    pub(crate) fn started_after(&self, earlier: &Self) -> Duration {
        self.began.saturating_duration_since(earlier.began)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static BEGAN: Instant = Instant::now();
        static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
        static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    #[test]
    fn time_without_a_processor_is_left_out_up_to_three_of_four_parts() {
        let now = || BEGAN.with(|began| *began + PASSED.get());
        let clock = Clock::with(Sources { now, waited: || WAITED.get() });
        let after = |seconds, waited| {
            PASSED.set(Duration::from_secs(seconds));
            WAITED.set(Duration::from_secs(waited));
            assert_eq!(clock.real_elapsed(), PASSED.get());
            clock.elapsed().as_secs()
        };
        assert_eq!(after(8, 0), 8);
        assert_eq!(after(8, 5), 3);
        assert_eq!(after(8, 6), 2);
        assert_eq!(after(8, 9), 2);
        assert_eq!(clock.restart().started_after(&clock), PASSED.get());
    }

    #[test]
    fn the_system_reports_the_time_that_a_thread_waits() {
        let clock = Clock::start();
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(os::waited().is_some(), os::INSTRUMENT == os::Instrument::Complete);
        assert!(clock.elapsed() > Duration::ZERO);
    }
}
