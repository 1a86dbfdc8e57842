//! Faults on request: what goes wrong, and when.
//!
//! `oom-at=17,free-fails=3,free-slow-ms=5,lost-at=100`. Not random: the same
//! program meets the same fault at the same place in every run.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::code::{Answer, Code};

/// The faults that a machine is to have. The default is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// The N-th allocation on the machine (1 is the first) fails for want of memory.
    pub oom_at: Option<u64>,
    /// The N-th free (1 is the first) gives `CUDA_ERROR_UNKNOWN`, and the block stays live.
    pub free_fails: Option<u64>,
    /// How long every free takes.
    pub free_slow: Duration,
    /// From the N-th call that touches a device (1 is the first) on, each gives
    /// `CUDA_ERROR_DEVICE_UNAVAILABLE` (46). Allocations, frees, copies, fills,
    /// launches, library calls, and recording, waiting and synchronising count.
    pub lost_at: Option<u64>,
}

/// Why a text does not describe faults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultsError {
    /// Not one of the keys.
    #[error("`{0}` is not a fault: oom-at=N, free-fails=N, free-slow-ms=MS or lost-at=N")]
    Unknown(String),
    /// The value is not a number, or 0 where counting starts at 1.
    #[error("`{key}={value}`: {expected}")]
    Value {
        /// The fault.
        key: &'static str,
        /// What was written.
        value: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// The same fault a second time.
    #[error("`{0}` is given twice")]
    Twice(&'static str),
}

impl FromStr for Faults {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut faults = Self::default();
        let mut seen = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let key = match key.trim() {
                "oom-at" => "oom-at",
                "free-fails" => "free-fails",
                "free-slow-ms" => "free-slow-ms",
                "lost-at" => "lost-at",
                _ => return Err(FaultsError::Unknown(part.to_owned())),
            };
            if seen.contains(&key) {
                return Err(FaultsError::Twice(key));
            }
            seen.push(key);
            let least = u64::from(key != "free-slow-ms");
            let value = value.trim();
            let number =
                value.parse().ok().filter(|&number: &u64| number >= least).ok_or_else(|| {
                    let expected = match least {
                        0 => "expected milliseconds",
                        _ => "expected a number from 1, the first being 1",
                    };
                    FaultsError::Value { key, value: value.to_owned(), expected }
                })?;
            match key {
                "oom-at" => faults.oom_at = Some(number),
                "free-fails" => faults.free_fails = Some(number),
                "free-slow-ms" => faults.free_slow = Duration::from_millis(number),
                _ => faults.lost_at = Some(number),
            }
        }
        Ok(faults)
    }
}

impl fmt::Display for Faults {
    /// The spelling that [`FromStr`] reads; empty for no faults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slow = u64::try_from(self.free_slow.as_millis()).unwrap_or(u64::MAX);
        let parts = [
            ("oom-at", self.oom_at),
            ("free-fails", self.free_fails),
            ("free-slow-ms", (slow > 0).then_some(slow)),
            ("lost-at", self.lost_at),
        ];
        let mut comma = "";
        for (key, value) in parts.iter().filter_map(|(key, value)| Some((key, (*value)?))) {
            write!(f, "{comma}{key}={value}")?;
            comma = ",";
        }
        Ok(())
    }
}

/// The faults of a machine at work, with how far it has come.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    faults: Faults,
    calls: u64,
    allocations: u64,
    frees: u64,
}

impl Schedule {
    pub(crate) fn new(faults: Faults) -> Self {
        Self { faults, ..Self::default() }
    }

    /// A call that touches a device.
    pub(crate) fn call(&mut self) -> Answer {
        self.calls += 1;
        match self.faults.lost_at {
            Some(at) if self.calls >= at => Err(Code::DEVICE_UNAVAILABLE),
            _ => Ok(()),
        }
    }

    /// An attempt to allocate.
    pub(crate) fn allocation(&mut self) -> Answer {
        self.allocations += 1;
        match self.faults.oom_at {
            Some(at) if self.allocations == at => Err(Code::OUT_OF_MEMORY),
            _ => Ok(()),
        }
    }

    /// An attempt to free.
    pub(crate) fn free(&mut self) -> Answer {
        self.frees += 1;
        match self.faults.free_fails {
            Some(at) if self.frees == at => Err(Code::UNKNOWN),
            _ => Ok(()),
        }
    }

    /// How long a free is to take.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_read_and_written_back() {
        let text = "oom-at=17,free-fails=3,free-slow-ms=5,lost-at=100";
        let faults: Faults = text.parse().unwrap();
        assert_eq!(faults.oom_at, Some(17));
        assert_eq!(faults.free_slow, Duration::from_millis(5));
        assert_eq!(faults.to_string(), text);
        assert_eq!("".parse(), Ok(Faults::default()));
        assert_eq!(Faults::default().to_string(), "");
    }

    #[test]
    fn bad_faults_are_errors_that_say_what_is_right() {
        for (text, message) in [
            ("oom", "`oom` is not a fault: oom-at=N, free-fails=N, free-slow-ms=MS or lost-at=N"),
            ("oom-at=0", "`oom-at=0`: expected a number from 1, the first being 1"),
            ("lost-at", "`lost-at=`: expected a number from 1, the first being 1"),
            ("free-slow-ms=5s", "`free-slow-ms=5s`: expected milliseconds"),
            ("oom-at=1,oom-at=2", "`oom-at` is given twice"),
        ] {
            assert_eq!(text.parse::<Faults>().unwrap_err().to_string(), message);
        }
    }
}
