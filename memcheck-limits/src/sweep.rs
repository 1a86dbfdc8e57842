//! The setting that refuses allocations on purpose.

use std::num::NonZeroU32;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most allocations that a sweep without a number refuses. The time of a sweep grows with the
/// square of the allocations of an iteration.
pub const MOST_REFUSED: u32 = 1_000;

/// The device allocations of one iteration that are refused in turn, as a person writes it:
/// `true`, `false`, or the most that are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FaultSweep {
    /// No allocation is refused.
    #[default]
    Off,
    /// Each allocation is refused once, up to [`MOST_REFUSED`] of them.
    Each,
    /// At most this number.
    AtMost(NonZeroU32),
}

/// The error of a text or number that is not such a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultSweepError {
    /// The text is neither a switch nor a number.
    #[error("`{0}` is neither `true`, `false` nor the most allocations that are refused")]
    Neither(String),
    /// The number is zero.
    #[error("0 would refuse no allocation: write `false`")]
    Zero,
}

impl FaultSweep {
    /// The most allocations that are refused; `None` if the sweep is off.
    pub fn most(self) -> Option<u32> {
        match self {
            Self::Off => None,
            Self::Each => Some(MOST_REFUSED),
            Self::AtMost(number) => Some(number.get()),
        }
    }
}

impl From<bool> for FaultSweep {
    fn from(on: bool) -> Self {
        if on { Self::Each } else { Self::Off }
    }
}

impl TryFrom<u32> for FaultSweep {
    type Error = FaultSweepError;

    fn try_from(number: u32) -> Result<Self, FaultSweepError> {
        NonZeroU32::new(number).map(Self::AtMost).ok_or(FaultSweepError::Zero)
    }
}

impl std::str::FromStr for FaultSweep {
    type Err = FaultSweepError;

    fn from_str(text: &str) -> Result<Self, FaultSweepError> {
        match (text.parse::<bool>(), text.parse::<u32>()) {
            (Ok(on), _) => Ok(on.into()),
            (_, Ok(number)) => number.try_into(),
            _ => Err(FaultSweepError::Neither(text.to_owned())),
        }
    }
}

impl std::fmt::Display for FaultSweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => f.pad("false"),
            Self::Each => f.pad("true"),
            Self::AtMost(number) => number.fmt(f),
        }
    }
}

/// A setting in JSON and TOML.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected true, false or a whole number")]
enum Wire {
    Switch(bool),
    Number(u32),
}

impl Serialize for FaultSweep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => Wire::Switch(false),
            Self::Each => Wire::Switch(true),
            Self::AtMost(number) => Wire::Number(number.get()),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FaultSweep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Wire::deserialize(deserializer)? {
            Wire::Switch(on) => Ok(on.into()),
            Wire::Number(number) => number.try_into().map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_switch_or_a_number_above_zero() {
        for (text, most) in [("true", Some(1_000)), ("false", None), ("7", Some(7))] {
            let setting: FaultSweep = text.parse().unwrap();
            assert_eq!(setting.most(), most);
            assert_eq!(setting.to_string(), text);
            let json = serde_json::to_string(&setting).unwrap();
            assert_eq!(json, text);
            assert_eq!(serde_json::from_str::<FaultSweep>(&json).unwrap(), setting);
        }
        for wrong in ["0", "-1", "all", ""] {
            assert!(wrong.parse::<FaultSweep>().is_err(), "{wrong}");
        }
        for (wrong, part) in [("0", "write `false`"), ("\"all\"", "a whole number")] {
            let error = serde_json::from_str::<FaultSweep>(wrong).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
