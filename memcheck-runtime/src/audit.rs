//! Audits of a loop: the memory of a device is read every N steps, and alerts are raised.
//!
//! For training loops, in tests and outside them. An audit judges only the figures of the steps at
//! which it reads the memory. A memory test is needed to prove a leak.

mod alert;

use candle_core::Device;
use memcheck_core::quiet;
use memcheck_core::size::{Size, SizeError};

pub use alert::{Alert, AlertReason};

use crate::usage::{self, Usage};

/// Reads the memory of one device every N steps of a loop.
///
/// At each reading, the audit emits the usage as [`crate::log_usage`] does, with the label
/// `step N`, for example `step 100`. If a figure is above its limit, it also raises an [`Alert`]:
/// it emits a `tracing` event of level WARN and target `memcheck`, and calls the function of
/// [`Audit::on_alert`].
///
/// ```
/// use candle_core::{DType, Device, Tensor};
/// use memcheck_runtime::Audit;
///
/// # fn main() -> candle_core::Result<()> {
/// # let device = Device::Cpu;
/// let mut audit = Audit::every(100)
///     .alert_above("20 GiB")
///     .alert_growth("64 KiB")
///     .reset_peak(true)
///     .on_alert(|alert| eprintln!("{alert}"));
/// for _step in 0..1_000 {
///     Tensor::zeros((8, 128), DType::F32, &device)?.sqr()?;
///     audit.step(&device)?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// A loop over several devices needs one audit for each device. Sizes are strings with the unit B,
/// KB or kB, MB, GB (powers of 1000) or KiB, MiB, GiB (powers of 1024). If a size is invalid, every
/// call of [`Audit::step`] returns the error, including the first.
pub struct Audit {
    every: u64,
    step: u64,
    limits: Limits,
    resets_peak: bool,
    on_alert: Option<OnAlert>,
    /// Live bytes at the last reading.
    last: Option<u64>,
    error: Option<AuditError>,
}

type OnAlert = Box<dyn FnMut(&Alert) + Send>;

/// Limits in bytes. A figure above its limit raises an alert; `None` means no limit.
#[derive(Debug, Clone, Copy, Default)]
struct Limits {
    allocated: Option<u64>,
    peak: Option<u64>,
    growth: Option<u64>,
}

#[derive(Debug, Clone, thiserror::Error)]
enum AuditError {
    #[error("`Audit::every(0)` never reads the memory: the number of steps must be at least 1")]
    ZeroSteps,
    #[error("the number of steps of `Audit::every` is out of range: it must be from 1 to 2^64 - 1")]
    StepsOutOfRange,
    #[error("`{option}` of an audit: {source}")]
    Size { option: &'static str, source: SizeError },
}

impl Audit {
    /// An audit that reads the memory at every `steps`-th call of [`Audit::step`]. `steps` must be
    /// at least 1 and can be an integer of any type. If it is 0 or negative, every call of
    /// [`Audit::step`] returns an error.
    ///
    /// Outside a memory test this call arms the probes; see [`crate::usage()`].
    pub fn every(steps: impl TryInto<u64>) -> Self {
        {
            let _quiet = quiet::enter();
            usage::arm();
        }
        let (every, error) = match steps.try_into() {
            Ok(0) => (0, Some(AuditError::ZeroSteps)),
            Ok(steps) => (steps, None),
            Err(_) => (0, Some(AuditError::StepsOutOfRange)),
        };
        Self {
            every,
            step: 0,
            limits: Limits::default(),
            resets_peak: false,
            on_alert: None,
            last: None,
            error,
        }
    }

    /// Raises an alert if more than `size` is live at a reading.
    #[must_use]
    pub fn alert_above(mut self, size: impl AsRef<str>) -> Self {
        self.limits.allocated = self.parse_size("alert_above", size.as_ref());
        self
    }

    /// Raises an alert if the peak is above `size`. The peak is that of the whole run, or, with
    /// [`Audit::reset_peak`], that since the last reading.
    #[must_use]
    pub fn alert_peak_above(mut self, size: impl AsRef<str>) -> Self {
        self.limits.peak = self.parse_size("alert_peak_above", size.as_ref());
        self
    }

    /// Raises an alert if the live bytes rose by more than `size` per step since the last reading.
    /// The first reading raises none, because it cannot be compared with an earlier one.
    #[must_use]
    pub fn alert_growth(mut self, size: impl AsRef<str>) -> Self {
        self.limits.growth = self.parse_size("alert_growth", size.as_ref());
        self
    }

    /// Calls `act` at every alert, on the thread that calls [`Audit::step`]. The allocations of
    /// `act` count as the program's.
    #[must_use]
    pub fn on_alert(mut self, act: impl FnMut(&Alert) + Send + 'static) -> Self {
        self.on_alert = Some(Box::new(act));
        self
    }

    /// If `resets` is true, each reading resets the peak to the live bytes; see
    /// [`crate::reset_peak`].
    #[must_use]
    pub fn reset_peak(mut self, resets: bool) -> Self {
        self.resets_peak = resets;
        self
    }

    /// Ends a step of the loop. Returns the usage of the device if the memory was read at this
    /// step, and `None` at other steps.
    ///
    /// # Errors
    /// If the audit was built with an invalid size or an invalid number of steps.
    pub fn step(&mut self, device: &Device) -> candle_core::Result<Option<Usage>> {
        if let Some(error) = &self.error {
            return Err(candle_core::Error::msg(error));
        }
        self.step += 1;
        if !self.step.is_multiple_of(self.every) {
            return Ok(None);
        }
        let usage = usage::usage(device);
        {
            let _quiet = quiet::enter();
            usage::log(&format!("step {}", self.step), device, &usage);
        }
        for alert in self.alerts(usage).into_iter().flatten() {
            alert.warn();
            if let Some(act) = &mut self.on_alert {
                act(&alert);
            }
        }
        if self.resets_peak {
            usage::reset_peak(device);
        }
        Ok(Some(usage))
    }

    /// The alerts of this reading. Stores its live bytes as those of the last reading.
    fn alerts(&mut self, usage: Usage) -> [Option<Alert>; 3] {
        let Limits { allocated, peak, growth } = self.limits;
        let rise = self.last.map_or(0, |last| usage.allocated.saturating_sub(last));
        self.last = Some(usage.allocated);
        let bytes_per_step = rise.div_ceil(self.every.max(1));
        let above = |figure: u64| move |limit: &u64| figure > *limit;
        [
            allocated.filter(above(usage.allocated)).map(|limit| AlertReason::Allocated { limit }),
            peak.filter(above(usage.peak_allocated)).map(|limit| AlertReason::Peak { limit }),
            // A rise of less than a byte per step is growth too.
            growth
                .filter(|limit| rise > limit.saturating_mul(self.every))
                .map(|limit| AlertReason::Growth { bytes_per_step, limit }),
        ]
        .map(|reason| Some(Alert { step: self.step, usage, reason: reason? }))
    }

    fn parse_size(&mut self, option: &'static str, size: &str) -> Option<u64> {
        match size.parse() {
            Ok(Size(bytes)) => Some(bytes),
            Err(source) => {
                self.error.get_or_insert(AuditError::Size { option, source });
                None
            }
        }
    }
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { every, step, limits, resets_peak, on_alert: _, last: _, error: _ } = self;
        f.debug_struct("Audit")
            .field("every", every)
            .field("step", step)
            .field("limits", limits)
            .field("resets_peak", resets_peak)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(allocated: u64, peak_allocated: u64) -> Usage {
        Usage { allocated, peak_allocated, ..Usage::default() }
    }

    /// The alerts at a reading of these live bytes and this peak.
    fn alerts_at(audit: &mut Audit, allocated: u64, peak: u64) -> Vec<String> {
        audit.step += audit.every;
        let alerts = audit.alerts(usage(allocated, peak));
        alerts.into_iter().flatten().map(|alert| alert.to_string()).collect()
    }

    #[test]
    fn a_figure_at_its_limit_is_silent_and_one_byte_above_is_an_alert() {
        let mut audit = Audit::every(10).alert_above("1 KiB").alert_peak_above("4 KiB");
        assert_eq!(alerts_at(&mut audit, 1024, 4096), [""; 0]);
        assert_eq!(
            alerts_at(&mut audit, 1025, 4096),
            ["step 20: 1,025 B (1.00 KiB) are live, above 1.00 KiB"]
        );
        let peak = "step 30: 4,097 B (4.00 KiB) were live at the peak, above 4.00 KiB";
        assert_eq!(alerts_at(&mut audit, 0, 4097), [peak]);
    }

    #[test]
    fn growth_is_the_rise_since_the_last_reading_divided_by_its_steps() {
        let mut audit = Audit::every(10).alert_growth("64 B");
        // The first reading has no earlier one to compare with.
        assert_eq!(alerts_at(&mut audit, 1 << 30, 0), [""; 0]);
        assert_eq!(alerts_at(&mut audit, (1 << 30) + 640, 0), [""; 0]);
        // One byte above the limit in all: the rate is rounded up, so that it is not equal to the
        // limit.
        let growth = "step 30: 65 B more are live with every step, above 64 B";
        assert_eq!(alerts_at(&mut audit, (1 << 30) + 2 * 640 + 1, 0), [growth]);
        assert_eq!(alerts_at(&mut audit, 0, 0), [""; 0]);
    }

    #[test]
    fn the_memory_is_read_at_every_nth_step() {
        let mut audit = Audit::every(3);
        let readings = (1..=7).map(|_| audit.step(&Device::Cpu).unwrap().is_some());
        assert_eq!(readings.collect::<Vec<_>>(), [false, false, true, false, false, true, false]);
    }

    #[test]
    fn an_invalid_audit_returns_its_error_at_the_first_step() {
        let error = |mut audit: Audit| audit.step(&Device::Cpu).unwrap_err().to_string();
        let size = error(Audit::every(100).alert_above("20 gigs").alert_growth("2 gigs"));
        assert!(size.contains("`alert_above` of an audit: `20 gigs` is not a size"), "{size}");
        assert!(size.contains("MiB"), "{size}");
        let zero = error(Audit::every(0));
        assert!(zero.contains("must be at least 1"), "{zero}");
        let negative = error(Audit::every(-3));
        assert!(negative.contains("from 1 to 2^64 - 1"), "{negative}");
        // Programs have sizes and steps in these types too.
        let mut audit = Audit::every(2_usize).alert_above(String::from("1 KiB"));
        assert!(audit.step(&Device::Cpu).unwrap().is_none());
        assert!(audit.step(&Device::Cpu).unwrap().is_some());
    }
}
