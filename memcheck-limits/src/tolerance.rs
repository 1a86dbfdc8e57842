//! How far above its baseline a figure may be.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::size::Size;

/// A share of the baseline, a number of bytes, or the larger of both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// The share of the baseline, in percent.
    pub percent: f64,
    /// The number of bytes.
    pub bytes: u64,
}

/// The error of a text that is not a tolerance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tolerance: write \"2%\", \"64 KiB\" or \"2% | 64 KiB\"")]
pub struct ToleranceError(String);

impl Tolerance {
    /// A tolerance of zero: every increase is a regression.
    pub const NONE: Self = Self { percent: 0.0, bytes: 0 };

    /// Returns the highest value that is within the tolerance of `baseline`.
    pub fn ceiling(self, baseline: u64) -> u64 {
        baseline.saturating_add(self.slack(baseline))
    }

    /// Returns the lowest value that is within the tolerance of `baseline`.
    pub fn floor(self, baseline: u64) -> u64 {
        baseline.saturating_sub(self.slack(baseline))
    }

    fn slack(self, baseline: u64) -> u64 {
        let share = (baseline as f64 * self.percent / 100.0).floor() as u64;
        share.max(self.bytes)
    }
}

impl std::str::FromStr for Tolerance {
    type Err = ToleranceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ToleranceError(text.to_owned());
        let mut percent = None;
        let mut bytes = None;
        for part in text.split('|').map(str::trim) {
            match part.strip_suffix('%') {
                Some(number) => {
                    let number: f64 = number.trim().parse().map_err(|_| error())?;
                    let sound = number.is_finite() && number >= 0.0;
                    if !sound || percent.replace(number).is_some() {
                        return Err(error());
                    }
                }
                None => {
                    let size: Size = part.parse().map_err(|_| error())?;
                    if part.is_empty() || bytes.replace(size.0).is_some() {
                        return Err(error());
                    }
                }
            }
        }
        Ok(Self { percent: percent.unwrap_or(0.0), bytes: bytes.unwrap_or(0) })
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.percent, self.bytes) {
            (percent, 0) => write!(f, "{percent}%"),
            (0.0, bytes) => write!(f, "{}", Size(bytes)),
            (percent, bytes) => write!(f, "{percent}% | {}", Size(bytes)),
        }
    }
}

impl Serialize for Tolerance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}% | {} B", self.percent, self.bytes))
    }
}

impl<'de> Deserialize<'de> for Tolerance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_of_share_and_bytes_holds() {
        let both: Tolerance = "1% | 4 KiB".parse().unwrap();
        assert_eq!(both.ceiling(1_000), 1_000 + 4_096);
        assert_eq!(both.ceiling(1_000_000), 1_010_000);
        assert_eq!(both.floor(1_000), 0);
        assert_eq!("64 KiB".parse::<Tolerance>().unwrap().ceiling(0), 65_536);
        assert_eq!("0%".parse::<Tolerance>().unwrap(), Tolerance::NONE);
    }

    #[test]
    fn wrong_texts_are_refused() {
        for text in ["", "%", "two%", "-1%", "1% | 2%", "1 KiB | 2 KiB", "1% |", "NaN%"] {
            assert!(text.parse::<Tolerance>().is_err(), "{text}");
        }
    }

    #[test]
    fn json_round_trips_exactly() {
        let tolerance: Tolerance = "2.5% | 4097 B".parse().unwrap();
        let json = serde_json::to_string(&tolerance).unwrap();
        assert_eq!(serde_json::from_str::<Tolerance>(&json).unwrap(), tolerance);
    }
}
