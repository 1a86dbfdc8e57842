//! The setting that refuses allocations on purpose.

use std::num::NonZeroU32;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A sweep without a number refuses every allocation of an iteration with at most this many. The
/// time of a sweep grows with the square of the allocations, so it refuses fewer of an iteration
/// with more: as many as make a sweep of the same length.
pub const MOST_REFUSED: u32 = 1_200;
/// A sweep without a number refuses at least this many, if the iteration has so many.
const LEAST_REFUSED: u64 = 100;

/// The device allocations of one iteration that are refused in turn, as a person writes it:
/// `true`, `false`, or the most that are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FaultSweep {
    /// No allocation is refused.
    #[default]
    Off,
    /// Each allocation is refused once, and a sample of those of a large iteration.
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
    /// True if allocations are refused.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }

    /// The most allocations that are refused of an iteration with this number of them.
    pub fn most_of(self, allocations: u64) -> u64 {
        match self {
            Self::Off => 0,
            Self::Each => {
                let most = u64::from(MOST_REFUSED);
                (most * most / allocations.max(1)).clamp(LEAST_REFUSED, most)
            }
            Self::AtMost(number) => number.get().into(),
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
        for (text, most) in [("true", 1_200), ("false", 0), ("7", 7)] {
            let setting: FaultSweep = text.parse().unwrap();
            assert_eq!(setting.most_of(1_000), most);
            assert_eq!(setting.is_on(), most > 0);
            assert_eq!(setting.to_string(), text);
            let json = serde_json::to_string(&setting).unwrap();
            assert_eq!(json, text);
            assert_eq!(serde_json::from_str::<FaultSweep>(&json).unwrap(), setting);
        }
        assert_eq!(FaultSweep::Each.most_of(1), 1_200);
        assert_eq!(FaultSweep::Each.most_of(2_400), 600);
        assert_eq!(FaultSweep::Each.most_of(1_000_000), 100);
        for wrong in ["0", "-1", "all", ""] {
            assert!(wrong.parse::<FaultSweep>().is_err(), "{wrong}");
        }
        for (wrong, part) in [("0", "write `false`"), ("\"all\"", "a whole number")] {
            let error = serde_json::from_str::<FaultSweep>(wrong).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
