//! The trial that a test body gets: its device, its iterations and its figures.

#[cfg(feature = "candle")]
mod devices;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use memcheck_core::limits::Limits;
use memcheck_core::measurement::fault_sweep::SweepResult;
use memcheck_core::quiet;
use memcheck_core::space::Space;
use memcheck_core::wire::protocol::{Progress, Reach};
use memcheck_ledger::{self as ledger, block};

use crate::device::{self, Device, Error};
use crate::fault_sweep::Sweep;
use crate::operations::Operations;
use crate::os::KeptFile;
use crate::outcome::Returned;
use crate::probe::tensor;
use crate::recorder::Recorder;
use crate::usage::Usage;
use crate::{progress, reads, unsimulated};

/// Name and value of each parameter of one run, in the order of the attribute.
pub(crate) type Case = Vec<(&'static str, String)>;

/// For each device other than the test's own, its space and whether its probe saw a canary.
pub(crate) type Canaries = Vec<(Space, bool)>;

/// The least time between two reports of the progress of a soak. Behind a launcher, reports are
/// lines of a file, which must not grow without bound.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);

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
    case: Case,
    progress: Mutex<Option<KeptFile>>,
    /// The time of the last report of a soak.
    reported: Mutex<Option<Instant>>,
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
            case,
            progress: Mutex::new(progress),
            reported: Mutex::default(),
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

    pub(crate) fn into_sweep(self) -> Option<SweepResult> {
        self.sweep.map(Sweep::into_result)
    }

    /// The same trial, whose iterations are not measured.
    pub(crate) fn uncounted(self) -> Self {
        Self { is_uncounted: true, ..self }
    }

    /// The recorder and the canaries, after the body has returned.
    pub(crate) fn into_parts(self) -> (Recorder, Canaries) {
        let recorder = self.recorder.into_inner().unwrap_or_else(PoisonError::into_inner);
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
    pub fn iterate<R: Returned>(&self, mut body: impl FnMut(usize) -> R) -> R {
        let started = {
            let _quiet = quiet::enter();
            self.recorder().start()
        };
        assert!(
            started,
            "Trial::iterate was called twice: growth is measured over one series, \
             so put both parts into one iteration or into two tests"
        );
        if let Some(sweep) = &self.sweep {
            return sweep.run(self.warmup, body, |done, of| {
                let live = ledger::snapshot(device::space(&self.device)).live;
                let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
                let progress =
                    Progress { iteration: count(done), of: count(of), live, ..Progress::default() };
                self.report(&progress);
            });
        }
        if self.is_uncounted {
            let mut all = (0..self.warmup + self.iterations).map(body);
            return all.find(Returned::is_error).unwrap_or_else(R::done);
        }
        let mut indices = 0..self.warmup + self.iterations;
        let mut operations = Operations::now();
        while !indices.is_empty() {
            for index in indices.clone() {
                match index < self.warmup + self.iterations {
                    true => operations = Operations::now(),
                    false => operations.permit_again(),
                }
                self.begin_iteration(index);
                let returned = body(index);
                if returned.is_error() {
                    return self.end_by_failure(returned);
                }
                self.end_iteration(index, indices.end);
            }
            indices = indices.end..indices.end + self.further_iterations();
        }
        R::done()
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
        self.recorder().begin_iteration(index);
    }

    fn end_iteration(&self, index: usize, of: usize) {
        // The tensor that the iteration made last must count as part of the iteration.
        tensor::settle();
        let _quiet = quiet::enter();
        self.recorder().end_iteration(index);
        // Only if a limit applies to the pool, because a query of the driver can return, and so
        // consume, the error of an earlier call of the program.
        #[cfg(feature = "cuda")]
        if self.watches_pool {
            self.recorder().observe_driver(index, &self.device);
        }
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
