//! The capacity into which a test must fit: a number of bytes, or the memory of a known card.
//!
//! Only bytes that the program requests count. The memory that a driver takes for contexts and for
//! rounding does not count, neither here nor against the capacity of the simulated device.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cards::{self, Card};
use crate::size::{BytesOrText, Size, SizeError};

/// A capacity as a person writes it: `"24 GiB"`, `"rtx4090"`, `25769803776`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// The capacity of a card.
    Card(&'static Card),
    /// A number of bytes, at least one.
    Bytes(Size),
}

/// The error of a text that is not a capacity. The message lists the similar cards or, if there are
/// none, all cards.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// The text is not a known card; the names are similar cards.
    #[error("`{0}` is not a known card: did you mean {near}? write a size as `24 GiB`", near = quoted(.1))]
    Card(String, Vec<&'static str>),
    /// The text is neither a size nor similar to a card.
    #[error(
        "`{0}` is neither a size such as `24 GiB` nor a known card: {known}",
        known = cards::CARDS.iter().map(|card| card.id).collect::<Vec<_>>().join(", ")
    )]
    Neither(String),
    /// The size has more bytes than a `u64` can count.
    #[error(transparent)]
    TooLarge(SizeError),
    /// The size is zero, into which no test fits.
    #[error(
        "`{0}` is not a capacity: write a size above 0 such as `24 GiB`, or a card such as `rtx4090`"
    )]
    Zero(String),
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

impl Capacity {
    /// Returns the capacity in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Card(card) => card.bytes,
            Self::Bytes(size) => size.0,
        }
    }

    fn from_size(size: Size, text: &str) -> Result<Self, CapacityError> {
        match size.0 {
            0 => Err(CapacityError::Zero(text.to_owned())),
            _ => Ok(Self::Bytes(size)),
        }
    }
}

impl std::str::FromStr for Capacity {
    type Err = CapacityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Cards come first because `4090` should be the card and not a number of bytes.
        if let Some(card) = cards::find(text) {
            return Ok(Self::Card(card));
        }
        match text.parse::<Size>() {
            Ok(size) => return Self::from_size(size, text),
            Err(error) if error.is_too_large() => return Err(CapacityError::TooLarge(error)),
            Err(_) => {}
        }
        Err(match cards::near(text) {
            near if near.is_empty() => CapacityError::Neither(text.to_owned()),
            near => CapacityError::Card(text.to_owned(), near),
        })
    }
}

impl std::fmt::Display for Capacity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Card(card) => write!(f, "{} ({})", card.id, Size(card.bytes)),
            Self::Bytes(size) => size.fmt(f),
        }
    }
}

/// Serializes the id of the card, or the number of bytes.
impl Serialize for Capacity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Card(card) => serializer.serialize_str(card.id),
            Self::Bytes(size) => serializer.serialize_u64(size.0),
        }
    }
}

impl<'de> Deserialize<'de> for Capacity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match BytesOrText::deserialize(deserializer)? {
            BytesOrText::Bytes(bytes) => {
                Self::from_size(Size(bytes), &bytes.to_string()).map_err(D::Error::custom)
            }
            BytesOrText::Text(text) => text.parse().map_err(D::Error::custom),
            BytesOrText::Other(_) => Err(D::Error::custom(
                "a number of bytes, a size such as \"24 GiB\" or a card such as \"rtx4090\"",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_is_a_size_or_a_card() {
        for (text, bytes, shown) in [
            ("24 GiB", 24 << 30, "24.0 GiB"),
            ("17", 17, "17 B"),
            ("rtx4090", cards::find("rtx4090").unwrap().bytes, "rtx4090 (23.6 GiB)"),
            ("4090", cards::find("rtx4090").unwrap().bytes, "rtx4090 (23.6 GiB)"),
            ("H100", cards::find("h100-80g").unwrap().bytes, "h100-80g (79.1 GiB)"),
        ] {
            let capacity: Capacity = text.parse().expect(text);
            assert_eq!((capacity.bytes(), capacity.to_string().as_str()), (bytes, shown), "{text}");
            let json = serde_json::to_string(&capacity).unwrap();
            assert_eq!(serde_json::from_str::<Capacity>(&json).unwrap(), capacity, "{json}");
        }
    }

    #[test]
    fn an_invalid_capacity_is_an_error_that_lists_similar_cards() {
        for (text, expected) in [
            ("rtx4091", "did you mean `rtx4090`?"),
            ("a100", "did you mean `a100-40g` or `a100-80g`?"),
            ("toaster", "neither a size such as `24 GiB` nor a known card: p100, v100-16g"),
            ("24 gigs", "neither a size"),
            ("", "neither a size"),
            ("0 B", "`0 B` is not a capacity: write a size above 0"),
            ("99999999999 TiB", "more bytes than 64 bits can count"),
        ] {
            let error = text.parse::<Capacity>().expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(serde_json::from_str::<Capacity>("0").is_err());
        let error = serde_json::from_str::<Capacity>("true").unwrap_err().to_string();
        assert!(error.contains("24 GiB"), "{error}");
    }
}
