//! Faults on request: calls that should fail, and when.
//!
//! A text such as `oom-at=17,free-fails=3,free-slow-ms=5,lost-at=100` describes them. Faults must
//! not be random, so that the same program meets the same fault at the same place in every run.

use std::ffi::c_int;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::code::{Answer, Code};
use crate::version::VERSION;

/// A fault that is selected by a word, and the error code that it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    word: &'static str,
    code: Code,
}

const fn named(word: &'static str, code: Code) -> Named {
    Named { word, code }
}

/// The words for `init`.
const INIT: &[Named] = &[
    named("no-device", Code::NO_DEVICE),
    named("stub", Code::STUB_LIBRARY),
    named("driver-mismatch", Code::SYSTEM_DRIVER_MISMATCH),
    named("not-ready", Code::SYSTEM_NOT_READY),
];
/// The words for `module`.
const MODULE: &[Named] = &[
    named("no-binary", Code::NO_BINARY_FOR_GPU),
    named("invalid-ptx", Code::INVALID_PTX),
    named("unsupported-ptx", Code::UNSUPPORTED_PTX_VERSION),
];
/// The words for `nvml`.
const NVML: &[Named] = &[named("silent", Code::NOT_SUPPORTED)];

/// The faults of a machine. The default has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// The N-th allocation on the machine (1 is the first) fails because memory has run out.
    pub oom_at: Option<u64>,
    /// The N-th free (1 is the first) returns `CUDA_ERROR_UNKNOWN`, and the block stays live.
    pub free_fails: Option<u64>,
    /// The time that every free takes.
    pub free_slow: Duration,
    /// From the N-th call that touches a device (1 is the first), each call returns
    /// `CUDA_ERROR_DEVICE_UNAVAILABLE` (46). These calls count: allocations, frees, copies, fills,
    /// launches, library calls, and recording, waiting and synchronizing.
    pub lost_at: Option<u64>,
    /// The same with `CUDA_ERROR_ECC_UNCORRECTABLE` (214).
    pub ecc_at: Option<u64>,
    /// The N-th launched kernel (1 is the first) fails. The launch itself succeeds, but every later
    /// call that touches a device returns `CUDA_ERROR_LAUNCH_FAILED` (719).
    pub launch_fails_at: Option<u64>,
    /// The error that `cuInit` returns: `no-device`, `stub`, `driver-mismatch` or `not-ready`.
    pub init: Option<Named>,
    /// The CUDA version of the driver, in the driver's notation (12040). If it is below the
    /// simulated version, modules cannot be loaded. If its major version is lower, libraries cannot
    /// be initialized either.
    pub driver: Option<c_int>,
    /// The error of loading a module: `no-binary`, `invalid-ptx` or `unsupported-ptx`.
    pub module: Option<Named>,
    /// The error of NVML's lists of processes: `silent`.
    pub nvml: Option<Named>,
}

/// The error of a text that does not describe faults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultsError {
    /// The key is not a fault.
    #[error("`{0}` is not a fault: expected {all}", all = KEYS.map(|(key, value)| format!("{key}={value}")).join(", "))]
    Unknown(String),
    /// The value is not a number or a known word, or it is 0 where counting starts at 1.
    #[error("`{key}={value}`: expected {expected}")]
    Value {
        /// The key of the fault.
        key: &'static str,
        /// The value in the text.
        value: String,
        /// The expected value.
        expected: String,
    },
    /// The text contains a fault twice.
    #[error("`{0}` is given twice")]
    Twice(&'static str),
}

/// Every key, and the form of its value.
const KEYS: [(&str, &str); 10] = [
    ("oom-at", "N"),
    ("free-fails", "N"),
    ("free-slow-ms", "MS"),
    ("lost-at", "N"),
    ("ecc-at", "N"),
    ("launch-fails-at", "N"),
    ("init", "WHY"),
    ("driver", "VERSION"),
    ("module", "WHY"),
    ("nvml", "silent"),
];

/// A fault in its text form.
struct Entry<'a> {
    key: &'static str,
    value: &'a str,
}

impl Entry<'_> {
    fn error(&self, expected: impl Into<String>) -> FaultsError {
        let Self { key, value } = *self;
        FaultsError::Value { key, value: value.to_owned(), expected: expected.into() }
    }

    /// Parses a position, counted from 1.
    fn parse_position(&self) -> Result<u64, FaultsError> {
        let number = self.value.parse().ok().filter(|&number: &u64| number > 0);
        number.ok_or_else(|| self.error("a number of at least 1"))
    }

    fn parse_word(&self, words: &[Named]) -> Result<Named, FaultsError> {
        words.iter().find(|named| named.word == self.value).copied().ok_or_else(|| {
            let all: Vec<&str> = words.iter().map(|named| named.word).collect();
            self.error(all.join(", "))
        })
    }
}

impl FromStr for Faults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut faults = Self::default();
        let mut seen = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let known = KEYS.iter().map(|(known, _)| *known).find(|known| *known == key.trim());
            let key = known.ok_or_else(|| FaultsError::Unknown(part.to_owned()))?;
            if seen.contains(&key) {
                return Err(FaultsError::Twice(key));
            }
            seen.push(key);
            let entry = Entry { key, value: value.trim() };
            match key {
                "oom-at" => faults.oom_at = Some(entry.parse_position()?),
                "free-fails" => faults.free_fails = Some(entry.parse_position()?),
                "lost-at" => faults.lost_at = Some(entry.parse_position()?),
                "ecc-at" => faults.ecc_at = Some(entry.parse_position()?),
                "launch-fails-at" => faults.launch_fails_at = Some(entry.parse_position()?),
                "init" => faults.init = Some(entry.parse_word(INIT)?),
                "module" => faults.module = Some(entry.parse_word(MODULE)?),
                "nvml" => faults.nvml = Some(entry.parse_word(NVML)?),
                "driver" => {
                    let version = entry.value.parse().ok().filter(|&version| version >= 1000);
                    let error = || entry.error("a version of CUDA, such as 12040 for 12.4");
                    faults.driver = Some(version.ok_or_else(error)?);
                }
                _ => {
                    let milliseconds = entry.value.parse();
                    let milliseconds =
                        milliseconds.map_err(|_| entry.error("a number of milliseconds"))?;
                    faults.free_slow = Duration::from_millis(milliseconds);
                }
            }
        }
        Ok(faults)
    }
}

impl fmt::Display for Faults {
    /// Writes a text that [`FromStr`] parses; empty without faults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let word = |named: Option<Named>| named.map(|named| named.word.to_owned());
        let slow = u64::try_from(self.free_slow.as_millis()).unwrap_or(u64::MAX);
        let values = [
            number(self.oom_at),
            number(self.free_fails),
            number((slow > 0).then_some(slow)),
            number(self.lost_at),
            number(self.ecc_at),
            number(self.launch_fails_at),
            word(self.init),
            self.driver.map(|version| version.to_string()),
            word(self.module),
            word(self.nvml),
        ];
        let mut comma = "";
        for ((key, _), value) in KEYS.iter().zip(values) {
            if let Some(value) = value {
                write!(f, "{comma}{key}={value}")?;
                comma = ",";
            }
        }
        Ok(())
    }
}

/// The faults of a running machine, with the counts that decide when they occur.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    faults: Faults,
    calls: u64,
    allocations: u64,
    frees: u64,
    launches: u64,
}

fn result_of(named: Option<Named>) -> Answer {
    named.map_or(Ok(()), |named| Err(named.code))
}

impl Schedule {
    pub(crate) fn new(faults: Faults) -> Self {
        Self { faults, ..Self::default() }
    }

    pub(crate) fn init(&self) -> Answer {
        result_of(self.faults.init)
    }

    pub(crate) fn driver(&self) -> c_int {
        self.faults.driver.unwrap_or(VERSION)
    }

    /// Returns the result of initializing a library, which requires a driver of at least its own
    /// major version.
    pub(crate) fn library(&self) -> Answer {
        if self.driver() / 1000 < VERSION / 1000 { Err(Code::INSUFFICIENT_DRIVER) } else { Ok(()) }
    }

    /// Returns the result of loading a module, whose code has the simulated version.
    pub(crate) fn module(&self) -> Answer {
        result_of(self.faults.module)?;
        if self.driver() < VERSION { Err(Code::UNSUPPORTED_PTX_VERSION) } else { Ok(()) }
    }

    pub(crate) fn nvml(&self) -> Answer {
        result_of(self.faults.nvml)
    }

    /// Counts a call that touches a device, and returns its result.
    pub(crate) fn call(&mut self) -> Answer {
        self.calls += 1;
        let Faults { lost_at, ecc_at, launch_fails_at, .. } = self.faults;
        let reached = |at: Option<u64>, count: u64| at.is_some_and(|at| count >= at);
        if reached(lost_at, self.calls) {
            return Err(Code::DEVICE_UNAVAILABLE);
        }
        if reached(ecc_at, self.calls) {
            return Err(Code::ECC_UNCORRECTABLE);
        }
        if reached(launch_fails_at, self.launches) { Err(Code::LAUNCH_FAILED) } else { Ok(()) }
    }

    /// Counts an attempt to allocate, and returns its result.
    pub(crate) fn allocation(&mut self) -> Answer {
        self.allocations += 1;
        match self.faults.oom_at {
            Some(at) if self.allocations == at => Err(Code::OUT_OF_MEMORY),
            _ => Ok(()),
        }
    }

    /// Counts an attempt to free, and returns its result.
    pub(crate) fn free(&mut self) -> Answer {
        self.frees += 1;
        match self.faults.free_fails {
            Some(at) if self.frees == at => Err(Code::UNKNOWN),
            _ => Ok(()),
        }
    }

    pub(crate) fn launched(&mut self) {
        self.launches += 1;
    }

    /// Returns the time that a free should take.
    pub(crate) fn pause(&self) -> Duration {
        self.faults.free_slow
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    pub(crate) fn allocations(&self) -> u64 {
        self.allocations
    }

    pub(crate) fn frees(&self) -> u64 {
        self.frees
    }

    pub(crate) fn launches(&self) -> u64 {
        self.launches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_parsed_and_formatted_back() {
        let text = "oom-at=17,free-fails=3,free-slow-ms=5,lost-at=100,ecc-at=7,launch-fails-at=2,\
                    init=no-device,driver=12040,module=no-binary,nvml=silent";
        let faults: Faults = text.parse().unwrap();
        assert_eq!(faults.oom_at, Some(17));
        assert_eq!(faults.free_slow, Duration::from_millis(5));
        assert_eq!(faults.to_string(), text);
        assert_eq!("".parse(), Ok(Faults::default()));
        assert_eq!(Faults::default().to_string(), "");
    }

    #[test]
    fn an_invalid_fault_is_an_error_that_shows_the_right_form() {
        for (text, message) in [
            (
                "oom",
                "`oom` is not a fault: expected oom-at=N, free-fails=N, free-slow-ms=MS, lost-at=N, \
                 ecc-at=N, launch-fails-at=N, init=WHY, driver=VERSION, module=WHY, nvml=silent",
            ),
            ("oom-at=0", "`oom-at=0`: expected a number of at least 1"),
            ("lost-at", "`lost-at=`: expected a number of at least 1"),
            ("free-slow-ms=5s", "`free-slow-ms=5s`: expected a number of milliseconds"),
            ("oom-at=1,oom-at=2", "`oom-at` is given twice"),
            ("init=gone", "`init=gone`: expected no-device, stub, driver-mismatch, not-ready"),
            ("driver=12.4", "`driver=12.4`: expected a version of CUDA, such as 12040 for 12.4"),
        ] {
            assert_eq!(text.parse::<Faults>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn an_old_driver_cannot_load_modules_and_an_older_major_version_cannot_load_libraries() {
        let with = |text: &str| Schedule::new(text.parse().unwrap());
        let results = |text: &str| (with(text).library(), with(text).module());
        assert_eq!(results(""), (Ok(()), Ok(())));
        assert_eq!(results("driver=13000"), (Ok(()), Ok(())));
        let unsupported = Err(Code::UNSUPPORTED_PTX_VERSION);
        assert_eq!(results("driver=12080"), (Err(Code::INSUFFICIENT_DRIVER), unsupported));
        assert_eq!(results("module=no-binary"), (Ok(()), Err(Code::NO_BINARY_FOR_GPU)));
    }

    #[test]
    fn each_word_and_each_lost_device_has_the_error_of_the_driver() {
        let with = |text: &str| Schedule::new(text.parse().unwrap());
        let name = |answer: Answer| {
            let (name, _) = crate::code::describe(answer.unwrap_err().0).unwrap();
            name.to_str().unwrap()
        };
        for (word, error) in [
            ("no-device", "CUDA_ERROR_NO_DEVICE"),
            ("stub", "CUDA_ERROR_STUB_LIBRARY"),
            ("driver-mismatch", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
            ("not-ready", "CUDA_ERROR_SYSTEM_NOT_READY"),
        ] {
            assert_eq!(name(with(&format!("init={word}")).init()), error);
        }
        for (word, error) in [
            ("no-binary", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
            ("invalid-ptx", "CUDA_ERROR_INVALID_PTX"),
            ("unsupported-ptx", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
        ] {
            assert_eq!(name(with(&format!("module={word}")).module()), error);
        }
        for (key, error) in [
            ("ecc-at", "CUDA_ERROR_ECC_UNCORRECTABLE"),
            ("lost-at", "CUDA_ERROR_DEVICE_UNAVAILABLE"),
        ] {
            let mut schedule = with(&format!("{key}=2"));
            assert_eq!(schedule.call(), Ok(()), "{key}");
            assert_eq!((name(schedule.call()), name(schedule.call())), (error, error));
        }
    }

    #[test]
    fn a_failed_kernel_is_reported_by_every_later_call() {
        let mut schedule = Schedule::new("launch-fails-at=2".parse().unwrap());
        schedule.launched();
        assert_eq!(schedule.call(), Ok(()));
        schedule.launched();
        assert_eq!(schedule.call(), Err(Code::LAUNCH_FAILED));
        assert_eq!(schedule.call(), Err(Code::LAUNCH_FAILED), "the error must stay");
    }
}
