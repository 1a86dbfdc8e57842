//! The trial that a test body gets: its device, its iterations and its figures.

mod counters;
#[cfg(feature = "candle")]
mod devices;
mod series;

use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use memcheck_core::characters::is_word;
use memcheck_core::limits::Limits;
use memcheck_core::measurement::fault_sweep::SweepResult;
use memcheck_core::quiet;
use memcheck_core::space::Space;
use memcheck_core::wire::protocol::Reach;
use memcheck_ledger::{self as ledger, block};

use crate::device::{self, Device, Error};
use crate::fault_sweep::Sweep;
use crate::last_state;
use crate::os::KeptFile;
use crate::outcome::Returned;
use crate::probe::tensor;
use crate::recorder::Recorder;
use crate::usage::Usage;

use self::counters::Counters;
use self::series::{Series, Start};

/// Name and value of each parameter of one run, in the order of the attribute.
pub(crate) type Case = Vec<(&'static str, String)>;

/// For each device other than the test's own, its space and whether its probe saw a canary.
pub(crate) type Canaries = Vec<(Space, bool)>;

/// The longest wait for other threads before the last census.
const PATIENCE: Duration = Duration::from_millis(100);

/// One run of one memory test.
///
/// The body sets up, passes the function of its iterations to [`Trial::iterate`], and returns.
/// Allocations before the iterations are `setup`, memory that iterations leave behind is `growth`,
/// and memory that is live after the body has returned is `retained`.
///
/// Every method takes `&self`, so that the function of an iteration can use the trial too.
#[derive(Debug)]
pub struct Trial {
    device: Device,
    #[cfg(feature = "candle")]
    devices: devices::OpenDevices,
    iterations: usize,
    warmup: usize,
    /// Must not be locked while the body runs, because the methods that the body calls lock it.
    recorder: Mutex<Recorder>,
    canaries: Mutex<Canaries>,
    counters: Counters,
    case: Case,
    progress: Mutex<Option<KeptFile>>,
    /// The time of the last report of a soak.
    reported: Mutex<Option<Instant>>,
    /// The longest wait for other threads before the last census.
    patience: Mutex<Duration>,
    /// Set in the process of a fault sweep.
    sweep: Option<Sweep>,
    /// True on a system that memcheck does not measure.
    is_uncounted: bool,
    #[cfg(feature = "cuda")]
    watches_pool: bool,
}

/// The reason why the value of a case cannot be returned.
#[derive(Debug, thiserror::Error)]
enum CaseError<'a> {
    #[error("`{0}` is not a parameter of this test: its attribute has no `cases(…)`")]
    None(&'a str),
    #[error("`{0}` is not a parameter of this test: its attribute has {1}")]
    Unknown(&'a str, String),
    #[error("the value `{value}` of the parameter `{name}` cannot be parsed as `{wanted}`")]
    Value { name: &'a str, value: &'a str, wanted: &'static str },
}

impl Trial {
    pub(crate) fn new(
        device: Device,
        (limits, reach): (&Limits, Reach),
        case: Case,
        progress: Option<KeptFile>,
    ) -> Self {
        Self {
            recorder: Mutex::new(Recorder::new(device::space(&device), reach, limits)),
            device,
            #[cfg(feature = "candle")]
            devices: Default::default(),
            iterations: limits.iterations.value as usize,
            warmup: limits.warmup.value as usize,
            canaries: Mutex::default(),
            counters: Counters::default(),
            case,
            progress: Mutex::new(progress),
            reported: Mutex::default(),
            patience: Mutex::new(PATIENCE),
            sweep: None,
            is_uncounted: false,
            #[cfg(feature = "cuda")]
            watches_pool: limits.max_reserved_growth.value.is_some(),
        }
    }

    /// The same trial, whose iterations are refused allocations by `sweep`.
    pub(crate) fn sweeping(self, sweep: Sweep) -> Self {
        Self { sweep: Some(sweep), ..self }
    }

    /// The same trial for a further round of the body, whose first block is born in this iteration.
    pub(crate) fn with_births_from(self, births_from: u32) -> Self {
        let recorder = self.recorder.into_inner().unwrap_or_else(PoisonError::into_inner);
        Self { recorder: Mutex::new(recorder.with_births_from(births_from)), ..self }
    }

    pub(crate) fn into_sweep(self) -> Option<SweepResult> {
        self.sweep.map(Sweep::into_result)
    }

    /// The same trial, whose iterations are not measured.
    pub(crate) fn uncounted(self) -> Self {
        Self { is_uncounted: true, ..self }
    }

    /// The recorder and the canaries, after the body has returned.
    pub(crate) fn into_parts(self) -> (Recorder, Canaries) {
        let mut recorder = self.recorder.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Dropped before the memory of the body is counted, because a counter can own its pool.
        let counters = self.counters;
        recorder.end_counters(&counters.read());
        drop(counters);
        (recorder, self.canaries.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of the parameter `name` in this test's case; the parameters are those of
    /// `cases(…)` in the attribute.
    ///
    /// # Errors
    /// If the attribute has no parameter of that name, or if its value cannot be parsed as `T`.
    pub fn case<T: std::str::FromStr>(&self, name: &str) -> Result<T, Error> {
        let Some((_, value)) = self.case.iter().find(|(known, _)| *known == name) else {
            let known: Vec<String> = self.cases().map(|(known, _)| format!("`{known}`")).collect();
            return Err(device::error(match known.is_empty() {
                true => CaseError::None(name),
                false => CaseError::Unknown(name, known.join(", ")),
            }));
        };
        value.parse().map_err(|_| {
            let wanted = std::any::type_name::<T>();
            device::error(CaseError::Value { name, value, wanted })
        })
    }

    /// Name and value of each parameter of this test's case, as written in the attribute.
    pub fn cases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.case.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// Number of measured iterations.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// Number of iterations before the measured ones.
    pub fn warmup(&self) -> usize {
        self.warmup
    }

    /// Calls `body` for the warm-up and the measured iterations, with the arguments 0, 1, 2, … that
    /// include the warm-up. If these iterations do not decide whether memory grows, further
    /// iterations may follow. `body` returns `()` or a `Result`. The first error ends the
    /// iterations and is returned. An error in a further iteration ends the iterations too, but is
    /// not returned, because `body` need not support so many.
    ///
    /// In the process of a fault sweep, the iterations after the warm-up all have the same argument.
    ///
    /// If code follows the call, the closure must name its error type, because the compiler cannot
    /// infer it:
    ///
    /// ```no_run
    /// # use candle_core::{DType, Tensor};
    /// # use memcheck_runtime::Trial;
    /// # fn test(trial: &mut Trial) -> candle_core::Result<()> {
    /// let device = trial.device();
    /// trial.iterate(|_| {
    ///     Tensor::zeros((8, 128), DType::F32, device)?.sqr()?;
    ///     trial.mark("squared");
    ///     candle_core::Result::Ok(()) // with anyhow: `anyhow::Ok(())`
    /// })?;
    /// trial.mark("done");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If it is called a second time, because growth is measured over one series.
    #[track_caller]
    pub fn iterate<R: Returned>(&self, mut body: impl FnMut(usize) -> R) -> R {
        last_state::iterate_at(Location::caller());
        let mut series = match Series::start(self) {
            Start::Series(series) => series,
            Start::Sweep(sweep) => {
                return sweep.run(self.warmup, body, |done, of| self.report_sweep(done, of));
            }
        };
        while let Some(index) = series.begin_next() {
            if let Some(error) = series.end(index, body(index)) {
                return error;
            }
        }
        R::done()
    }

    /// [`Trial::iterate`] for an `async` body, which awaits the call. The future of an iteration
    /// must be complete before the next iteration begins. Tasks that it leaves running go on during
    /// later iterations, and the blocks that they allocate belong to the iteration that runs then.
    ///
    /// ```no_run
    /// # use candle_core::{DType, Tensor};
    /// # use memcheck_runtime::Trial;
    /// # async fn answer(_: &Tensor) -> candle_core::Result<()> { Ok(()) }
    /// # async fn test(trial: &mut Trial) -> candle_core::Result<()> {
    /// let weights = Tensor::zeros((64, 64), DType::F32, trial.device())?;
    /// trial.iterate_async(|_| async { answer(&weights).await }).await
    /// # }
    /// ```
    ///
    /// # Panics
    /// If iterations have begun before.
    pub async fn iterate_async<R: Returned>(&self, mut body: impl AsyncFnMut(usize) -> R) -> R {
        let mut series = match Series::start(self) {
            Start::Series(series) => series,
            Start::Sweep(sweep) => {
                let report = |done, of| self.report_sweep(done, of);
                // Boxed, because the future of a body without a sweep must not hold that of one.
                let swept = {
                    let _quiet = quiet::enter();
                    Box::pin(sweep.run_async(self.warmup, body, report))
                };
                return swept.await;
            }
        };
        while let Some(index) = series.begin_next() {
            if let Some(error) = series.end(index, body(index).await) {
                return error;
            }
        }
        R::done()
    }

    /// Runs `work` as the phase `name` of the body and returns what it returns. The record, the
    /// baseline and the reports have two figures of each phase:
    ///
    /// - `peak_allocated`: the most bytes live at once in the phase, those from before it included.
    ///   `phases(decode <= "64 MiB")` in the attribute limits it.
    /// - `growth`: the bytes that were allocated in the phase and that an iteration leaves behind.
    ///
    /// The peak of a phase that runs several times is the highest one. Phases can be nested, and can
    /// overlap on several threads; a block belongs to the phase that began last. Further iterations
    /// of [`Trial::iterate`] change no figure of a phase.
    ///
    /// # Panics
    /// If the name is not a word of 1 to 64 ASCII letters, digits, `_`, `-` and `.`, or if the body
    /// has more than 127 phases.
    pub fn phase<R>(&self, name: &str, work: impl FnOnce() -> R) -> R {
        /// Ends the phase, also if `work` panics.
        struct Phase<'a>(&'a Trial, Option<u64>);
        impl Drop for Phase<'_> {
            fn drop(&mut self) {
                // The tensor that was made last is part of the phase.
                tensor::settle();
                let _quiet = quiet::enter();
                if let Some(begun) = self.1 {
                    self.0.recorder().end_phase(begun);
                }
            }
        }
        assert!(
            is_word(name),
            "`{name}` is not the name of a phase: use 1 to 64 ASCII letters, digits, `_`, `-`, `.`"
        );
        tensor::settle();
        let _phase = {
            let _quiet = quiet::enter();
            Phase(self, self.recorder().begin_phase(name))
        };
        work()
    }

    /// Runs `work` without counting it: the blocks that its thread allocates are in no figure, from
    /// their allocation to their free. A fixture that the body writes or loads is not memory of the
    /// code under test. Blocks that were allocated before the call and that `work` frees are
    /// counted as freed. Threads that `work` starts are counted.
    ///
    /// Figures of the system and of the driver (resident memory, the driver's pool, NVML) contain
    /// all memory.
    pub fn unmeasured<R>(&self, work: impl FnOnce() -> R) -> R {
        // A tensor that was made before must be recognized while its thread is counted.
        tensor::settle();
        let _unmeasured = quiet::stop_measuring();
        work()
    }

    /// The current memory of the test's device. Without the feature `candle` this is the first
    /// device of the leg; see [`crate::usage_by_space`].
    pub fn usage(&self) -> Usage {
        crate::usage::of(&self.device)
    }

    /// Adds a labeled line of usage to the record. Each call adds a line, in order. If an
    /// iteration calls it, this includes the iterations of the warm-up, but not the further
    /// iterations of [`Trial::iterate`].
    pub fn mark(&self, label: impl AsRef<str>) {
        let _quiet = quiet::enter();
        self.recorder().mark(label.as_ref());
    }

    /// Sets how long the last census waits for other threads to free memory after the body has
    /// returned: threads that end by themselves, or a channel that they empty. It is 0.1 s without
    /// a call. The wait ends as soon as no more memory is live than `max_retained` allows.
    pub fn settle(&self, at_most: Duration) {
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner) = at_most;
    }

    pub(crate) fn patience(&self) -> Duration {
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resets the peak that [`Trial::usage`] reports to the live bytes, on every device; see
    /// [`crate::reset_peak`].
    ///
    /// The peak that is judged and recorded is still that of the whole body.
    pub fn reset_peak(&self) {
        block::spaces().for_each(ledger::reset_peak);
    }

    /// Returns unused memory of the driver's pool to the device; see [`mod@crate::usage`].
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn release_cached(&self) -> Result<(), Error> {
        crate::usage::release(&self.device)
    }
}
