//! Watches the time of an iteration in which an allocation is refused. If the body hangs, the
//! result so far is written and the process ends, because a thread cannot be stopped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use memcheck_core::measurement::fault_sweep::{Effect, SweepResult};
use memcheck_core::wire::exit;

use crate::quiet_thread;

/// Writes a result, so that it stays if the process ends.
pub(crate) type Write = Arc<dyn Fn(&SweepResult) + Send + Sync>;

/// The pause between two looks at the time.
const PAUSE: Duration = Duration::from_millis(50);

/// A refusal that the body handles now, with the result if it does not return.
#[derive(Debug)]
struct Running {
    began: Instant,
    most: Duration,
    result: SweepResult,
}

#[derive(Debug, Clone, Default)]
pub(super) struct BodyWatch(Arc<Mutex<Option<Running>>>);

impl BodyWatch {
    /// Starts the thread that watches.
    ///
    /// # Errors
    /// If the system refuses the thread.
    pub(super) fn start(write: Write) -> std::io::Result<Self> {
        let watch = Self::default();
        let watched = watch.clone();
        quiet_thread::spawn("memcheck-faults", move || {
            loop {
                std::thread::sleep(PAUSE);
                if let Some(result) = watched.overdue() {
                    write(&result);
                    std::process::exit(i32::from(exit::FAILED));
                }
            }
        })?;
        Ok(watch)
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a refusal that may take `most`. The last failure of `result` is that of a body that
    /// does not return.
    pub(super) fn begin(&self, most: Duration, result: SweepResult) {
        *self.running() = Some(Running { began: Instant::now(), most, result });
    }

    pub(super) fn end(&self) {
        *self.running() = None;
    }

    /// The result of a sweep whose body hangs.
    fn overdue(&self) -> Option<SweepResult> {
        let mut running = self.running();
        let elapsed = running.as_ref()?.began.elapsed();
        let Running { mut result, .. } = running.take_if(|running| elapsed > running.most)?;
        if let Some(failure) = result.failures.last_mut() {
            failure.effect = Effect::Hung { seconds: elapsed.as_secs() };
        }
        result.ended = Some("the body did not return".to_owned());
        Some(result)
    }
}
