//! The kinds of values that limits have: how each is parsed, kept, and shown.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};

use crate::bound::Bound;
use crate::capacity::Capacity;
use crate::size::Size;
use crate::sweep::FaultSweep;
use crate::tolerance::Tolerance;
use crate::values::Contents;

/// A kind of value.
pub trait LimitKind {
    /// The value as a source states it.
    type Stated: Clone + fmt::Debug + PartialEq;
    /// The value in force.
    type InForce: Clone + fmt::Debug + PartialEq;
    /// The value in JSON and TOML.
    type Wire: Serialize + DeserializeOwned;
    /// The placeholder of the value in help texts.
    const PLACEHOLDER: &'static str;
    /// The value of a flag that is given without one; empty if a flag needs a value.
    const IF_BARE: &'static [&'static str] = &[];

    /// Parses a flag or a variable.
    ///
    /// # Errors
    /// If the text is not such a value; the message states the right form.
    fn parse(text: &str) -> Result<Self::Stated, String>;

    /// The value for JSON and TOML.
    fn to_wire(stated: &Self::Stated) -> Self::Wire;

    /// Checks a value that was read from JSON or TOML.
    ///
    /// # Errors
    /// If the value is out of range.
    fn from_wire(wire: Self::Wire) -> Result<Self::Stated, String>;

    /// The value in force for a stated one.
    fn in_force(stated: Self::Stated) -> Self::InForce;

    /// The value in force, for people.
    fn show(in_force: &Self::InForce) -> String;

    /// The part of the value that also holds for a program, which is not one of several tests.
    fn for_program(stated: Self::Stated) -> Option<Self::Stated> {
        Some(stated)
    }
}

/// Reads a value from JSON or TOML.
///
/// # Errors
/// If it is not such a value.
pub fn deserialize<'de, K: LimitKind, D: Deserializer<'de>>(
    from: D,
) -> Result<K::Stated, D::Error> {
    K::from_wire(K::Wire::deserialize(from)?).map_err(Error::custom)
}

/// The part of a kind whose value parses itself and has the same form in a file.
macro_rules! stated_as {
    ($value:ty, $placeholder:literal) => {
        type Stated = $value;
        type Wire = $value;
        const PLACEHOLDER: &'static str = $placeholder;

        fn parse(text: &str) -> Result<$value, String> {
            text.parse().map_err(|error| format!("{error}"))
        }

        fn to_wire(stated: &$value) -> $value {
            stated.clone()
        }

        fn from_wire(wire: $value) -> Result<$value, String> {
            Ok(wire)
        }
    };
}

/// The part of a kind whose value is in force as it was stated.
macro_rules! in_force_as_stated {
    ($value:ty) => {
        type InForce = $value;

        fn in_force(stated: $value) -> $value {
            stated
        }

        fn show(in_force: &$value) -> String {
            in_force.to_string()
        }
    };
}

/// A number of events.
#[derive(Debug, Clone, Copy)]
pub enum Count {}

impl LimitKind for Count {
    stated_as!(u64, "N");
    in_force_as_stated!(u64);
}

/// A number of iterations, which may be zero.
#[derive(Debug, Clone, Copy)]
pub enum Number {}

impl LimitKind for Number {
    stated_as!(u32, "N");
    in_force_as_stated!(u32);
}

/// A size or a card.
#[derive(Debug, Clone, Copy)]
pub enum Room {}

impl LimitKind for Room {
    stated_as!(Capacity, "CAPACITY");
    in_force_as_stated!(Capacity);
}

/// A percentage, a number of bytes, or the larger of both.
#[derive(Debug, Clone, Copy)]
pub enum Deviation {}

impl LimitKind for Deviation {
    stated_as!(Tolerance, "TOLERANCE");
    in_force_as_stated!(Tolerance);
}

/// The contents of device memory.
#[derive(Debug, Clone, Copy)]
pub enum Kept {}

impl LimitKind for Kept {
    stated_as!(Contents, "CONTENTS");
    in_force_as_stated!(Contents);
}

/// The allocations that are refused on purpose.
#[derive(Debug, Clone, Copy)]
pub enum Faults {}

impl LimitKind for Faults {
    stated_as!(FaultSweep, "N");
    in_force_as_stated!(FaultSweep);
    const IF_BARE: &'static [&'static str] = &["true"];
}

/// Yes or no.
#[derive(Debug, Clone, Copy)]
pub enum Switch {}

impl LimitKind for Switch {
    stated_as!(bool, "BOOL");
    in_force_as_stated!(bool);
    const IF_BARE: &'static [&'static str] = &["true"];
}

/// A number of bytes.
#[derive(Debug, Clone, Copy)]
pub enum Bytes {}

impl LimitKind for Bytes {
    stated_as!(Size, "SIZE");
    type InForce = u64;

    fn in_force(Size(bytes): Size) -> u64 {
        bytes
    }

    fn show(in_force: &u64) -> String {
        Size(*in_force).to_string()
    }
}

/// A number of bytes, or a share of another test's figure.
#[derive(Debug, Clone, Copy)]
pub enum Share {}

impl LimitKind for Share {
    stated_as!(Bound, "BOUND");
    in_force_as_stated!(Bound);

    fn for_program(stated: Bound) -> Option<Bound> {
        matches!(stated, Bound::Bytes(_)).then_some(stated)
    }
}

/// A number of iterations, at least one.
#[derive(Debug, Clone, Copy)]
pub enum AtLeastOne {}

impl LimitKind for AtLeastOne {
    type Stated = u32;
    type Wire = u32;
    in_force_as_stated!(u32);
    const PLACEHOLDER: &'static str = "N";

    fn parse(text: &str) -> Result<u32, String> {
        Self::from_wire(text.parse().map_err(|error| format!("{error}"))?)
    }

    fn to_wire(stated: &u32) -> u32 {
        *stated
    }

    fn from_wire(wire: u32) -> Result<u32, String> {
        if wire == 0 { Err("it must be at least 1".to_owned()) } else { Ok(wire) }
    }
}

/// A duration above zero.
#[derive(Debug, Clone, Copy)]
pub enum Time {}

impl LimitKind for Time {
    type Stated = Duration;
    type InForce = Duration;
    type Wire = String;
    const PLACEHOLDER: &'static str = "DURATION";

    fn parse(text: &str) -> Result<Duration, String> {
        match humantime::parse_duration(text) {
            Ok(duration) if !duration.is_zero() => Ok(duration),
            _ => Err(format!(
                "`{text}` is not a duration: write \"500ms\", \"60s\", \"10m\" or \"1h 30m\", more than zero"
            )),
        }
    }

    fn to_wire(stated: &Duration) -> String {
        humantime::format_duration(*stated).to_string()
    }

    fn from_wire(wire: String) -> Result<Duration, String> {
        Self::parse(&wire)
    }

    fn in_force(stated: Duration) -> Duration {
        stated
    }

    fn show(in_force: &Duration) -> String {
        humantime::format_duration(*in_force).to_string()
    }
}

/// A kind that sets no limit unless a source states one.
#[derive(Debug, Clone, Copy)]
pub struct Optional<K>(PhantomData<K>);

impl<K: LimitKind> LimitKind for Optional<K> {
    type Stated = K::Stated;
    type InForce = Option<K::InForce>;
    type Wire = K::Wire;
    const PLACEHOLDER: &'static str = K::PLACEHOLDER;

    fn parse(text: &str) -> Result<K::Stated, String> {
        K::parse(text)
    }

    fn to_wire(stated: &K::Stated) -> K::Wire {
        K::to_wire(stated)
    }

    fn from_wire(wire: K::Wire) -> Result<K::Stated, String> {
        K::from_wire(wire)
    }

    fn in_force(stated: K::Stated) -> Option<K::InForce> {
        Some(K::in_force(stated))
    }

    fn show(in_force: &Option<K::InForce>) -> String {
        in_force.as_ref().map_or_else(|| "none".to_owned(), K::show)
    }

    fn for_program(stated: K::Stated) -> Option<K::Stated> {
        K::for_program(stated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_of_zero_is_refused() {
        assert_eq!(Time::parse("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(Time::parse("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["0s", "soon", "60", ""] {
            assert!(Time::parse(wrong).is_err(), "{wrong}");
        }
    }
}
