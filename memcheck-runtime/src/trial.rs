//! What a test body is given: its device, its iterations, its figures.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use candle_core::Device;
use memcheck_core::limits::Limits;
use memcheck_core::protocol::{Progress, Reach};
use memcheck_core::quiet;
use memcheck_core::space::Space;

use crate::outcome::Returned;
use crate::probe::tensor;
use crate::recorder::Recorder;
use crate::usage::Usage;
use crate::{block, canary, device, ledger};

/// Name and value of each parameter of one run, in the order of the attribute.
pub(crate) type Case = Vec<(&'static str, String)>;

/// What the canaries of the devices other than the test's own proved.
pub(crate) type Canaries = Vec<(Space, bool)>;

/// One run of one memory test.
///
/// The body sets up, hands its iteration to [`Trial::iterate`], and returns:
/// what it allocated before is `setup`, what an iteration leaves behind is
/// `growth`, what is still live after it returned is `retained`.
///
/// Every method takes `&self`: the body of an iteration may use the trial too.
#[derive(Debug)]
pub struct Trial {
    device: Device,
    devices: OnceLock<Vec<Device>>,
    iterations: usize,
    warmup: usize,
    /// Never locked while the body runs: what it calls locks it for itself.
    recorder: Mutex<Recorder>,
    canaries: Mutex<Canaries>,
    case: Case,
    progress: Mutex<Option<std::fs::File>>,
    #[cfg(feature = "cuda")]
    watches_pool: bool,
}

/// Why a case cannot be handed to the body.
#[derive(Debug, thiserror::Error)]
enum CaseError<'a> {
    #[error("there is no case `{0}`, and no other: the attribute says none with `cases(…)`")]
    None(&'a str),
    #[error("there is no case `{0}`, but {1}")]
    Unknown(&'a str, String),
    #[error("the case `{name}` is `{value}`, which is no {wanted}")]
    Value { name: &'a str, value: &'a str, wanted: &'static str },
}

impl Trial {
    pub(crate) fn new(
        device: Device,
        (limits, reach): (&Limits, Reach),
        case: Case,
        progress: Option<std::fs::File>,
    ) -> Self {
        Self {
            recorder: Mutex::new(Recorder::new(device::space(&device), reach, limits)),
            device,
            devices: OnceLock::new(),
            iterations: limits.iterations.value as usize,
            warmup: limits.warmup.value as usize,
            canaries: Mutex::default(),
            case,
            progress: Mutex::new(progress),
            #[cfg(feature = "cuda")]
            watches_pool: limits.max_reserved_growth.value.is_some(),
        }
    }

    /// What is left of it when the body is done.
    pub(crate) fn into_parts(self) -> (Recorder, Canaries) {
        let recorder = self.recorder.into_inner().unwrap_or_else(PoisonError::into_inner);
        (recorder, self.canaries.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device that the test runs on. Its memory is what is judged.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Every device of the machine, the test's own among them, by ordinal.
    /// Those that the body allocates on are judged as well.
    ///
    /// # Errors
    /// When a device cannot be opened.
    pub fn devices(&self) -> candle_core::Result<&[Device]> {
        let _quiet = quiet::enter();
        // Held all the while: of two threads that ask, one opens them.
        let mut canaries = self.canaries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(devices) = self.devices.get() {
            return Ok(devices);
        }
        let devices = device::all(&self.device)?;
        let own = device::space(&self.device);
        for other in devices.iter().filter(|other| device::space(other) != own) {
            let space = device::space(other);
            canaries.push((space, canary::on(other)?));
            ledger::reset_unused(space);
        }
        Ok(self.devices.get_or_init(|| devices))
    }

    /// The value of this test's case named `name`, of `cases(…)` in the attribute.
    ///
    /// # Errors
    /// When the attribute has no case of that name, or its value is no `T`.
    pub fn case<T: std::str::FromStr>(&self, name: &str) -> candle_core::Result<T> {
        let Some((_, value)) = self.case.iter().find(|(known, _)| *known == name) else {
            let known: Vec<String> = self.cases().map(|(known, _)| format!("`{known}`")).collect();
            return Err(candle_core::Error::msg(match known.is_empty() {
                true => CaseError::None(name),
                false => CaseError::Unknown(name, known.join(", ")),
            }));
        };
        value.parse().map_err(|_| {
            let wanted = std::any::type_name::<T>();
            candle_core::Error::msg(CaseError::Value { name, value, wanted })
        })
    }

    /// Name and value of each of this test's cases, as they are written.
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

    /// Runs `body` for the warm-up and the measured iterations. It is given 0,
    /// 1, 2, … with the warm-up counted in, and returns nothing or a `Result`;
    /// the first error ends the iterations and is returned.
    ///
    /// Where more comes behind it, an iteration says which error it has:
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
    /// When it is called a second time: growth is measured over one series.
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
        let mut indices = 0..self.warmup + self.iterations;
        while !indices.is_empty() {
            for index in indices.clone() {
                self.begin(index);
                let returned = body(index);
                if returned.is_error() {
                    if self.fails_beyond() {
                        return R::done();
                    }
                    return returned;
                }
                self.end(index, indices.end);
            }
            indices = indices.end..indices.end + self.further();
        }
        R::done()
    }

    /// Further iterations that are needed to decide the growth.
    fn further(&self) -> usize {
        let _quiet = quiet::enter();
        let mut recorder = self.recorder();
        let further = recorder.further();
        if further == 0 {
            recorder.iterated();
        }
        further as usize
    }

    /// The body returned an error. True if only following it has made it do so.
    fn fails_beyond(&self) -> bool {
        let _quiet = quiet::enter();
        let mut recorder = self.recorder();
        let beyond = recorder.fails_beyond();
        recorder.iterated();
        beyond
    }

    fn begin(&self, index: usize) {
        let _quiet = quiet::enter();
        self.recorder().begin(index);
    }

    fn end(&self, index: usize, of: usize) {
        // What the iteration made last is its own.
        tensor::settle();
        let _quiet = quiet::enter();
        self.recorder().end(index);
        // Only where it is judged: to ask the driver takes up what it has to
        // say of a call before.
        #[cfg(feature = "cuda")]
        if self.watches_pool {
            self.recorder().observe(index, &self.device);
        }
        let progress = Progress {
            iteration: u32::try_from(index + 1).unwrap_or(u32::MAX),
            of: u32::try_from(of).unwrap_or(u32::MAX),
            live: ledger::snapshot(device::space(&self.device)).live,
        };
        tell(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner), &progress);
    }

    /// The memory of the test's device now.
    pub fn usage(&self) -> Usage {
        crate::usage::usage(&self.device)
    }

    /// Keeps a labelled line of usage in the record: one for each call, in order,
    /// those of the warm-up among them where an iteration calls it.
    pub fn mark(&self, label: impl AsRef<str>) {
        let _quiet = quiet::enter();
        self.recorder().mark(label.as_ref());
    }

    /// Sets the peak that [`Trial::usage`] reports to what is live now, on every
    /// device; see [`crate::reset_peak`].
    ///
    /// The peak that is judged and recorded stays that of the whole body.
    pub fn reset_peak(&self) {
        block::spaces().for_each(ledger::reset_peak);
    }

    /// Gives memory that the driver's pool holds but nobody uses back to the
    /// device; see [`crate::release_cached`].
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn release_cached(&self) -> candle_core::Result<()> {
        crate::usage::release_cached(&self.device)
    }
}

/// Tells where the test is. Nobody listening is no reason to fail.
pub(crate) fn tell(listener: &mut Option<std::fs::File>, progress: &Progress) {
    if let Some(file) = listener {
        use std::io::Write;
        let line = serde_json::to_string(progress).unwrap_or_default() + "\n";
        if file.write_all(line.as_bytes()).is_err() {
            *listener = None;
        }
    }
}
