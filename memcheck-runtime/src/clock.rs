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
    read: fn() -> Reading,
    began: Reading,
}

/// A reading of the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) at: Instant,
    /// The time so far for which the thread waited for a processor.
    pub(crate) waited: Duration,
}

impl Clock {
    /// Starts the clock. The caller must be quiet.
    pub(crate) fn start() -> Self {
        Self::with(Reading::now)
    }

    pub(crate) fn with(read: fn() -> Reading) -> Self {
        Self { read, began: read() }
    }

    /// The clock starts again, with the same readings.
    pub(crate) fn restart(&self) -> Self {
        Self::with(self.read)
    }

    /// The time since the start, without the time for which the thread waited for a processor. The
    /// caller must be quiet.
    pub(crate) fn elapsed(&self) -> Duration {
        let now = (self.read)();
        let all = now.at.saturating_duration_since(self.began.at);
        let waited = now.waited.saturating_sub(self.began.waited);
        let (part, of) = MOST_WAITED;
        all - waited.min(all / of * part)
    }
}

impl Reading {
    fn now() -> Self {
        Self { at: Instant::now(), waited: os::waited().unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NOW: Cell<Option<Reading>> = const { Cell::new(None) };
    }

    fn read() -> Reading {
        NOW.get().unwrap_or_else(|| Reading { at: Instant::now(), waited: Duration::ZERO })
    }

    #[test]
    fn time_without_a_processor_is_left_out_up_to_three_of_four_parts() {
        let began = read();
        NOW.set(Some(began));
        let clock = Clock::with(read);
        let after = |seconds, waited| {
            let waited = began.waited + Duration::from_secs(waited);
            NOW.set(Some(Reading { at: began.at + Duration::from_secs(seconds), waited }));
            clock.elapsed().as_secs()
        };
        assert_eq!(after(8, 0), 8);
        assert_eq!(after(8, 5), 3);
        assert_eq!(after(8, 6), 2);
        assert_eq!(after(8, 9), 2);
        NOW.set(None);
    }

    #[test]
    fn the_system_reports_the_time_that_a_thread_waits() {
        let clock = Clock::start();
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(os::waited().is_some(), os::INSTRUMENT == os::Instrument::Complete);
        assert!(clock.elapsed() > Duration::ZERO);
    }
}
