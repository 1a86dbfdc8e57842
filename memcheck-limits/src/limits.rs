//! The limits of a test: one layer per source, resolved once into [`Limits`].
//!
//! A [`Layer`] holds the values of one source: an attribute, a table of the configuration, the
//! environment or the command line. [`Limits`] holds the values in force for one test on one
//! device. Each value keeps its source, so that `list --verbose` and the record can show both.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bound::Bound;
use crate::capacity::Capacity;
use crate::device::Family;
use crate::size::Size;
use crate::tolerance::Tolerance;

/// Default limit of growth: 1 MiB (1024² bytes) in an iteration, because guides to profiling memory
/// in PyTorch call more than 1 MB an iteration a leak.
pub const DEFAULT_MAX_GROWTH: u64 = 1 << 20;
/// Default limit of the bytes that can stay on a GPU after the test body has returned.
pub const DEFAULT_MAX_RETAINED_DEVICE: u64 = 0;
/// Default limit of the bytes that can stay on the host after the test body has returned.
///
/// It is a noise floor for the memory that a library keeps after its first use (thread pools,
/// lazily built tables). Only blocks of at least 1 KiB count.
pub const DEFAULT_MAX_RETAINED_HOST: u64 = 64 << 10;
/// Default number of measured iterations.
pub const DEFAULT_ITERATIONS: u32 = 10;
/// Default number of iterations before the measured ones.
pub const DEFAULT_WARMUP: u32 = 2;
/// Default maximum of measured iterations, for a test that the first iterations leave undecided.
pub const DEFAULT_MAX_ITERATIONS: u32 = 1_000;
/// Default time for which an undecided test is followed.
pub const DEFAULT_EVIDENCE: Duration = Duration::from_secs(10);
/// Default time-out of a test.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// The limits that one source sets; `None` means that the source does not set the value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Layer {
    /// Maximum number of bytes by which live memory may grow in one iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_growth: Option<Size>,
    /// Maximum number of live bytes, set-up included. The limit can also be relative to another
    /// test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_peak: Option<Bound>,
    /// Maximum number of bytes that are still live after the body has returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retained: Option<Size>,
    /// Maximum number of allocations in one measured iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_allocations: Option<u64>,
    /// Maximum number of bytes by which the reserved memory of the driver's pool, or the memory
    /// that NVML reports for the process, may grow in one iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_reserved_growth: Option<Size>,
    /// The capacity into which the test must fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fits: Option<Capacity>,
    /// Number of measured iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Number of iterations before the measured ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<u32>,
    /// Maximum number of measured iterations, if the first ones leave the test undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// How long an undecided test is followed beyond its iterations.
    #[serde(skip_serializing_if = "Option::is_none", with = "evidence_text")]
    pub evidence: Option<Duration>,
    /// How far above its baseline a figure may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
    /// True if a snapshot is kept and compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<bool>,
    /// How long the test may take.
    #[serde(skip_serializing_if = "Option::is_none", with = "timeout_text")]
    pub timeout: Option<Duration>,
}

impl Layer {
    /// Returns the values that apply to a program, which has no iterations and no baseline.
    pub fn for_program(&self) -> Self {
        // The pattern must stay exhaustive, so that a new limit cannot be forgotten here.
        let Self {
            max_growth: _,
            max_peak,
            max_retained,
            max_allocations: _,
            max_reserved_growth: _,
            fits,
            iterations: _,
            warmup: _,
            max_iterations: _,
            evidence: _,
            tolerance: _,
            baseline: _,
            timeout,
        } = self;
        Self {
            // A program cannot be limited relative to a test.
            max_peak: max_peak.clone().filter(|bound| matches!(bound, Bound::Bytes(_))),
            max_retained: *max_retained,
            fits: *fits,
            timeout: *timeout,
            ..Self::default()
        }
    }
}

/// Defines a module for serde's `with`, for a duration as people write it (`"60s"`, `"1h 30m"`).
/// The given function of this module parses it.
macro_rules! duration_text {
    ($module:ident, $parse:path) => {
        mod $module {
            use serde::{Deserialize, Deserializer, Serializer};
            use std::time::Duration;

            #[expect(clippy::ref_option, reason = "the signature that serde's `with` asks for")]
            pub(super) fn serialize<S: Serializer>(
                value: &Option<Duration>,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                match value {
                    Some(duration) => {
                        serializer.collect_str(&humantime::format_duration(*duration))
                    }
                    None => serializer.serialize_none(),
                }
            }

            pub(super) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Option<Duration>, D::Error> {
                let text = Option::<String>::deserialize(deserializer)?;
                text.map(|text| $parse(&text).map_err(serde::de::Error::custom)).transpose()
            }
        }
    };
}
duration_text!(timeout_text, super::parse_timeout);
duration_text!(evidence_text, super::parse_evidence);

/// Parses a time-out: `"60s"`, `"10m"`. Zero is an error because no test could run.
///
/// # Errors
/// If the text is not a duration, or is zero.
pub fn parse_timeout(text: &str) -> Result<Duration, TimeoutError> {
    match humantime::parse_duration(text) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(TimeoutError(text.to_owned())),
    }
}

/// The error of a text that is not a time-out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time-out: write \"60s\", \"10m\" or \"1h 30m\", more than zero")]
pub struct TimeoutError(String);

/// Parses the time for which an undecided test is followed: `"10s"`, `"500ms"`.
///
/// # Errors
/// If the text is not a duration, or is zero.
pub fn parse_evidence(text: &str) -> Result<Duration, EvidenceError> {
    match humantime::parse_duration(text) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(EvidenceError(text.to_owned())),
    }
}

/// The error of a text that is not a time for which a test is followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration: write \"10s\", \"500ms\" or \"2m\", more than zero")]
pub struct EvidenceError(String);

/// The source of a value, ordered from the weakest to the strongest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The built-in default.
    BuiltIn,
    /// `[default]` of the configuration.
    Default,
    /// The attribute of the test.
    Attribute,
    /// The `[[override]]` of the configuration with this number, counted from 1.
    Override(u32),
    /// The environment.
    Environment,
    /// The command line.
    Flag,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::Default => f.write_str("[default]"),
            Self::Attribute => f.write_str("attribute"),
            Self::Override(number) => write!(f, "[[override]] {number}"),
            Self::Environment => f.write_str("environment"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// A value and its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting<T> {
    /// The value in force.
    pub value: T,
    /// The source of the value.
    pub source: Source,
}

/// The limits in force for one test on one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum number of bytes by which live memory may grow in one iteration.
    pub max_growth: Setting<u64>,
    /// Maximum number of live bytes; `None` means no limit.
    pub max_peak: Setting<Option<Bound>>,
    /// Maximum number of bytes that are still live after the body has returned.
    pub max_retained: Setting<u64>,
    /// Maximum number of allocations in one measured iteration; `None` means no limit.
    pub max_allocations: Setting<Option<u64>>,
    /// Maximum number of bytes by which the reserved memory of the driver's pool, or the memory
    /// that NVML reports for the process, may grow in one iteration. `None` means that these
    /// figures are not judged.
    pub max_reserved_growth: Setting<Option<u64>>,
    /// The capacity into which the test must fit; `None` means that of the device on which it runs.
    pub fits: Setting<Option<Capacity>>,
    /// Number of measured iterations.
    pub iterations: Setting<u32>,
    /// Number of iterations before the measured ones.
    pub warmup: Setting<u32>,
    /// Maximum number of measured iterations, if the first ones leave the test undecided.
    pub max_iterations: Setting<u32>,
    /// How long an undecided test is followed beyond its iterations.
    pub evidence: Setting<Duration>,
    /// How far above its baseline a figure may be.
    pub tolerance: Setting<Tolerance>,
    /// True if a snapshot is kept and compared.
    pub baseline: Setting<bool>,
    /// How long the test may take.
    pub timeout: Setting<Duration>,
}

impl Limits {
    /// Resolves the layers for a device of `family`. A value of a later layer replaces that of an
    /// earlier one.
    pub fn resolve<'a>(
        family: Family,
        layers: impl IntoIterator<Item = (Source, &'a Layer)>,
    ) -> Self {
        let built_in = |value| Setting { value, source: Source::BuiltIn };
        let mut limits = Self {
            max_growth: built_in(DEFAULT_MAX_GROWTH),
            max_peak: Setting { value: None, source: Source::BuiltIn },
            max_retained: built_in(match family {
                Family::Cuda => DEFAULT_MAX_RETAINED_DEVICE,
                Family::Cpu => DEFAULT_MAX_RETAINED_HOST,
            }),
            max_allocations: Setting { value: None, source: Source::BuiltIn },
            max_reserved_growth: Setting { value: None, source: Source::BuiltIn },
            fits: Setting { value: None, source: Source::BuiltIn },
            iterations: Setting { value: DEFAULT_ITERATIONS, source: Source::BuiltIn },
            warmup: Setting { value: DEFAULT_WARMUP, source: Source::BuiltIn },
            max_iterations: Setting { value: DEFAULT_MAX_ITERATIONS, source: Source::BuiltIn },
            evidence: Setting { value: DEFAULT_EVIDENCE, source: Source::BuiltIn },
            tolerance: Setting { value: default_tolerance(family), source: Source::BuiltIn },
            baseline: Setting { value: true, source: Source::BuiltIn },
            timeout: Setting { value: DEFAULT_TIMEOUT, source: Source::BuiltIn },
        };
        for (source, layer) in layers {
            limits.apply(&source, layer);
        }
        limits
    }

    fn apply(&mut self, source: &Source, layer: &Layer) {
        fn set<T>(setting: &mut Setting<T>, source: &Source, said: Option<T>) {
            if let Some(value) = said {
                *setting = Setting { value, source: source.clone() };
            }
        }
        // The pattern must stay exhaustive, so that a new limit cannot be forgotten here.
        let Layer {
            max_growth,
            max_peak,
            max_retained,
            max_allocations,
            max_reserved_growth,
            fits,
            iterations,
            warmup,
            max_iterations,
            evidence,
            tolerance,
            baseline,
            timeout,
        } = layer;
        set(&mut self.max_growth, source, max_growth.map(|size| size.0));
        set(&mut self.max_peak, source, max_peak.clone().map(Some));
        set(&mut self.max_retained, source, max_retained.map(|size| size.0));
        set(&mut self.max_allocations, source, max_allocations.map(Some));
        set(&mut self.max_reserved_growth, source, max_reserved_growth.map(|size| Some(size.0)));
        set(&mut self.fits, source, fits.map(Some));
        set(&mut self.iterations, source, *iterations);
        set(&mut self.warmup, source, *warmup);
        set(&mut self.max_iterations, source, *max_iterations);
        set(&mut self.evidence, source, *evidence);
        set(&mut self.tolerance, source, *tolerance);
        set(&mut self.baseline, source, *baseline);
        set(&mut self.timeout, source, *timeout);
    }

    /// Returns the name, the value as text and the source of every limit, for `list --verbose`.
    pub fn rows(&self) -> Vec<(&'static str, String, String)> {
        let size = |bytes: u64| Size(bytes).to_string();
        let none = || "none".to_owned();
        vec![
            ("max_growth", size(self.max_growth.value), self.max_growth.source.to_string()),
            (
                "max_peak",
                self.max_peak.value.as_ref().map_or_else(none, Bound::to_string),
                self.max_peak.source.to_string(),
            ),
            ("max_retained", size(self.max_retained.value), self.max_retained.source.to_string()),
            (
                "max_allocations",
                self.max_allocations.value.map_or_else(none, |count| count.to_string()),
                self.max_allocations.source.to_string(),
            ),
            (
                "max_reserved_growth",
                self.max_reserved_growth.value.map_or_else(none, size),
                self.max_reserved_growth.source.to_string(),
            ),
            (
                "fits",
                self.fits.value.map_or_else(none, |capacity| capacity.to_string()),
                self.fits.source.to_string(),
            ),
            ("iterations", self.iterations.value.to_string(), self.iterations.source.to_string()),
            ("warmup", self.warmup.value.to_string(), self.warmup.source.to_string()),
            (
                "max_iterations",
                self.max_iterations.value.to_string(),
                self.max_iterations.source.to_string(),
            ),
            (
                "evidence",
                humantime::format_duration(self.evidence.value).to_string(),
                self.evidence.source.to_string(),
            ),
            ("tolerance", self.tolerance.value.to_string(), self.tolerance.source.to_string()),
            ("baseline", self.baseline.value.to_string(), self.baseline.source.to_string()),
            (
                "timeout",
                humantime::format_duration(self.timeout.value).to_string(),
                self.timeout.source.to_string(),
            ),
        ]
    }
}

fn default_tolerance(family: Family) -> Tolerance {
    match family {
        Family::Cuda => Tolerance::NONE,
        Family::Cpu => Tolerance { percent: 1.0, bytes: 4 << 10 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_layers_win_and_say_so() {
        let file = Layer { iterations: Some(20), warmup: Some(1), ..Layer::default() };
        let attribute = Layer { iterations: Some(30), ..Layer::default() };
        let flag = Layer { max_peak: Some(Size(7).into()), ..Layer::default() };
        let limits = Limits::resolve(
            Family::Cuda,
            [(Source::Default, &file), (Source::Attribute, &attribute), (Source::Flag, &flag)],
        );
        assert_eq!(limits.iterations, Setting { value: 30, source: Source::Attribute });
        assert_eq!(limits.warmup, Setting { value: 1, source: Source::Default });
        assert_eq!(limits.max_peak, Setting { value: Some(Size(7).into()), source: Source::Flag });
        assert_eq!(limits.max_growth, Setting { value: 1 << 20, source: Source::BuiltIn });
    }

    #[test]
    fn the_host_has_a_noise_floor_and_a_gpu_has_none() {
        let host = Limits::resolve(Family::Cpu, []);
        let gpu = Limits::resolve(Family::Cuda, []);
        assert_eq!(gpu.max_retained.value, 0);
        assert_eq!(gpu.tolerance.value, Tolerance::NONE);
        assert_eq!(host.max_retained.value, 65_536);
        assert_eq!(host.tolerance.value.to_string(), "1% | 4.0 KiB");
    }

    #[test]
    fn every_limit_has_a_row() {
        let json = serde_json::to_value(Limits::resolve(Family::Cpu, [])).unwrap();
        let rows = Limits::resolve(Family::Cpu, []).rows();
        assert_eq!(rows.len(), json.as_object().unwrap().len());
    }

    #[test]
    fn a_time_out_of_nothing_is_refused() {
        assert_eq!(parse_timeout("60s").unwrap(), Duration::from_secs(60));
        assert!(parse_timeout("0s").is_err());
        assert!(parse_timeout("soon").is_err());
    }
}
