//! A limit in bytes, or one that is relative to another test: `"0.6 x train_plain"`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::law::Fraction;
use crate::size::{BytesOrText, Size};

/// A limit on a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// A number of bytes.
    Bytes(Size),
    /// A share of the same figure of another test.
    Relative(Relative),
}

/// A share of another test's figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relative {
    factor: Fraction,
    /// The path of the other test as it is written: the whole path, or its end.
    pub test: String,
}

/// The error of a text that is not a bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BoundError {
    /// The text is neither a size nor a share.
    #[error(
        "`{0}` is neither a size such as `64 KiB` nor a share of another test's figure such as \
         `0.6 x other_test`"
    )]
    Neither(String),
    /// The factor of the share is not a factor.
    #[error(
        "`{0}` is not a factor: write a decimal number above 0 with at most 9 digits on each side \
         of its point, as in `0.6 x other_test`"
    )]
    Factor(String),
    /// The name in the share is not the path of a test.
    #[error("`{0}` is not the path of a test: write it as in `0.6 x other_test`")]
    Test(String),
}

impl Relative {
    /// Returns the exact factor.
    pub fn factor(&self) -> Fraction {
        self.factor
    }

    /// Returns this share of a figure, rounded down.
    pub fn share_of(&self, figure: u64) -> u64 {
        let share = self.factor.times(Fraction::whole(figure));
        // An overflow means that the share is larger than every figure.
        share.and_then(Fraction::floor).unwrap_or(u64::MAX)
    }
}

/// Parses `0.6`, `12` or `.5` as a fraction, so that 0.6 is exactly six tenths.
fn parse_factor(text: &str) -> Result<Fraction, BoundError> {
    let error = || BoundError::Factor(text.to_owned());
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.len() <= 9 && part.chars().all(|c| c.is_ascii_digit());
    if !digits(whole) || !digits(decimals) {
        return Err(error());
    }
    let number: i128 = format!("{whole}{decimals}").parse().map_err(|_| error())?;
    let power = u32::try_from(decimals.len()).map_err(|_| error())?;
    let factor = Fraction::new(number, 10_i128.pow(power)).filter(|factor| factor.is_positive());
    factor.ok_or_else(error)
}

fn is_path(text: &str) -> bool {
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    text.split("::").all(is_name)
}

impl std::str::FromStr for Bound {
    type Err = BoundError;

    fn from_str(text: &str) -> Result<Self, BoundError> {
        let spaced = text.split_once(" x ");
        let Some((share, test)) = spaced else {
            let size = text.parse().map(Self::Bytes);
            return size.map_err(|_| BoundError::Neither(text.to_owned()));
        };
        let (factor, test) = (parse_factor(share.trim())?, test.trim());
        if !is_path(test) {
            return Err(BoundError::Test(test.to_owned()));
        }
        Ok(Self::Relative(Relative { factor, test: test.to_owned() }))
    }
}

/// Writes the share in the form that the parser accepts: `0.6 x other_test`.
impl std::fmt::Display for Relative {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The denominator divides ten to the ninth, because the parser accepts at most nine
        // decimals.
        let billionths = self.factor.numerator() * (1_000_000_000 / self.factor.denominator());
        let (whole, rest) = (billionths / 1_000_000_000, billionths % 1_000_000_000);
        let decimals = format!("{rest:09}");
        match decimals.trim_end_matches('0') {
            "" => write!(f, "{whole} x {}", self.test),
            decimals => write!(f, "{whole}.{decimals} x {}", self.test),
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(size) => size.fmt(f),
            Self::Relative(relative) => relative.fmt(f),
        }
    }
}

impl From<Size> for Bound {
    fn from(size: Size) -> Self {
        Self::Bytes(size)
    }
}

/// Serializes the number of bytes, or the text of the share.
impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bytes(size) => serializer.serialize_u64(size.0),
            Self::Relative(relative) => serializer.collect_str(relative),
        }
    }
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match BytesOrText::deserialize(deserializer)? {
            BytesOrText::Bytes(bytes) => Ok(Self::Bytes(Size(bytes))),
            BytesOrText::Text(text) => text.parse().map_err(D::Error::custom),
            BytesOrText::Other(_) => Err(D::Error::custom(
                "a number of bytes, a size such as \"64 KiB\" or a share such as \"0.6 x other_test\"",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relative(text: &str) -> Relative {
        match text.parse() {
            Ok(Bound::Relative(relative)) => relative,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_factor_is_exact_and_its_share_rounded_down() {
        for (text, shown, figure, share) in [
            ("0.6 x plain", "0.6 x plain", 10, 6),
            // In floating point 0.1 * 3 is more than 0.3, and 0.29 * 100 is less than 29.
            ("0.29 x plain", "0.29 x plain", 100, 29),
            (".5  x  train::plain", "0.5 x train::plain", 7, 3),
            ("1 x plain", "1 x plain", 7, 7),
            ("12.50 x plain", "12.5 x plain", 2, 25),
            ("0.000000001 x plain", "0.000000001 x plain", 999_999_999, 0),
            ("999999999 x plain", "999999999 x plain", u64::MAX, u64::MAX),
        ] {
            let relative = relative(text);
            assert_eq!((relative.to_string().as_str(), relative.share_of(figure)), (shown, share));
            let json = serde_json::to_string(&Bound::Relative(relative.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Bound>(&json).unwrap(), Bound::Relative(relative));
        }
    }

    #[test]
    fn a_bound_in_bytes_round_trips_through_json() {
        assert_eq!("64 KiB".parse(), Ok(Bound::Bytes(Size(65_536))));
        assert_eq!(serde_json::to_string(&Bound::Bytes(Size(7))).unwrap(), "7");
        assert_eq!(serde_json::from_str::<Bound>("7").unwrap(), Bound::Bytes(Size(7)));
    }

    #[test]
    fn an_invalid_bound_is_an_error_that_shows_the_right_form() {
        for (text, expected) in [
            ("0.6 of other", "neither"),
            ("0.6x other", "neither"),
            ("60% x other", "`60%` is not a factor"),
            ("-1 x other", "`-1` is not a factor"),
            ("0 x other", "`0` is not a factor"),
            ("0.0 x other", "`0.0` is not a factor"),
            ("1e3 x other", "`1e3` is not a factor"),
            (". x other", "`.` is not a factor"),
            ("0.1234567890 x other", "`0.1234567890` is not a factor"),
            ("0.6 x ", "`` is not the path of a test"),
            ("0.6 x a b", "`a b` is not the path of a test"),
            ("0.6 x ::a", "`::a` is not the path of a test"),
        ] {
            let error = text.parse::<Bound>().expect_err(text).to_string();
            assert!(error.contains(expected) && error.contains("0.6 x other_test"), "{error}");
        }
    }
}
