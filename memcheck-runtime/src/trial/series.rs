//! The iterations of a trial, one after the other, for bodies that return and for those that are
//! awaited.

use std::ops::Range;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use memcheck_core::quiet;
use memcheck_core::wire::protocol::Progress;
use memcheck_ledger as ledger;

use super::Trial;
use crate::device;
use crate::fault_sweep::Sweep;
use crate::operations::Operations;
use crate::outcome::Returned;
use crate::probe::tensor;
use crate::{last_state, progress, reads, unsimulated};

/// The least time between two reports of the progress of a soak. Behind a launcher, reports are
/// lines of a file, which must not grow without bound.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);

/// The iterations that are still to run. Nothing here is held while a body is awaited.
pub(super) struct Series<'a> {
    trial: &'a Trial,
    left: Range<usize>,
    operations: Operations,
}

/// How the iterations of this process run.
pub(super) enum Start<'a> {
    Series(Series<'a>),
    Sweep(&'a Sweep),
}

impl<'a> Series<'a> {
    /// # Panics
    /// If iterations have begun before.
    pub(super) fn start(trial: &'a Trial) -> Start<'a> {
        let started = {
            let _quiet = quiet::enter();
            let counters = trial.counters.read();
            trial.recorder().start(&counters)
        };
        assert!(
            started,
            "Trial::iterate was called twice: growth is measured over one series, \
             so put both parts into one iteration or into two tests"
        );
        match &trial.sweep {
            Some(sweep) => Start::Sweep(sweep),
            None => Start::Series(Self {
                trial,
                left: 0..trial.warmup + trial.iterations,
                operations: Operations::now(),
            }),
        }
    }

    /// Begins the next iteration and returns its index; `None` after the last.
    pub(super) fn begin_next(&mut self) -> Option<usize> {
        let trial = self.trial;
        if self.left.is_empty() && !trial.is_uncounted {
            self.left.end += trial.further_iterations();
        }
        let index = self.left.next()?;
        if !trial.is_uncounted {
            match index < trial.warmup + trial.iterations {
                true => self.operations = Operations::now(),
                false => self.operations.permit_again(),
            }
            trial.begin_iteration(index);
        }
        Some(index)
    }

    /// Ends an iteration. `Some` if its error ends all iterations.
    pub(super) fn end<R: Returned>(&mut self, index: usize, returned: R) -> Option<R> {
        let trial = self.trial;
        if returned.is_error() {
            return Some(match trial.is_uncounted {
                true => returned,
                false => trial.end_by_failure(returned),
            });
        }
        if !trial.is_uncounted {
            trial.end_iteration(index, self.left.end);
        }
        None
    }
}

impl Trial {
    /// Reports the number of refusals so far, and of those planned.
    pub(super) fn report_sweep(&self, done: u64, of: u64) {
        let live = ledger::snapshot(device::space(&self.device)).live;
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let progress =
            Progress { iteration: count(done), of: count(of), live, ..Progress::default() };
        self.report(&progress);
    }

    /// The number of further iterations that are needed to decide the growth.
    fn further_iterations(&self) -> usize {
        let _quiet = quiet::enter();
        let mut recorder = self.recorder();
        let further = recorder.further_iterations();
        reads::set_further(further > 0);
        unsimulated::set_further(further > 0);
        if further == 0 {
            recorder.end_iterations();
        }
        further as usize
    }

    /// Ends the iterations with an error of the body, which is none of the test if it was in iterations
    /// beyond the measured ones.
    fn end_by_failure<R: Returned>(&self, returned: R) -> R {
        let is_extended = self.recorder().is_extended();
        let (returned, error) = match is_extended {
            true => (R::done(), returned.report().err()),
            false => (returned, None),
        };
        let _quiet = quiet::enter();
        let mut recorder = self.recorder();
        if let Some(error) = error {
            recorder.handle_failure(&error);
        }
        reads::set_further(false);
        unsimulated::set_further(false);
        recorder.end_iterations();
        returned
    }

    fn begin_iteration(&self, index: usize) {
        let _quiet = quiet::enter();
        last_state::begin_iteration(index);
        self.recorder().begin_iteration(index);
    }

    fn end_iteration(&self, index: usize, of: usize) {
        // The tensor that the iteration made last must count as part of the iteration.
        tensor::settle();
        let _quiet = quiet::enter();
        let counters = self.counters.read();
        self.recorder().end_iteration(index, &counters);
        // Only if a limit applies to the pool, because a query of the driver can return, and so
        // consume, the error of an earlier call of the program.
        #[cfg(feature = "cuda")]
        if self.watches_pool {
            self.recorder().observe_driver(index, &self.device);
        }
        last_state::end_iteration(index);
        let soak = self.recorder().soak_time();
        if soak.is_some() && !self.is_report_due() {
            return;
        }
        let progress = Progress {
            iteration: u32::try_from(index + 1).unwrap_or(u32::MAX),
            of: u32::try_from(of).unwrap_or(u32::MAX),
            live: ledger::snapshot(device::space(&self.device)).live,
            soak,
            view: None,
        };
        self.report(&progress);
    }

    fn is_report_due(&self) -> bool {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = reported.is_none_or(|last| last.elapsed() >= BETWEEN_REPORTS);
        if is_due {
            *reported = Some(Instant::now());
        }
        is_due
    }

    fn report(&self, progress: &Progress) {
        let mut listener = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress::report(&mut listener, progress);
    }
}
