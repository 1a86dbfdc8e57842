//! Which machine to simulate: the cards, their capacity, and its faults.
//!
//! `[Nx]CARD[,capacity=SIZE]`, several joined by `+`: `h200`, `2xrtx4090`,
//! `rtx4090,capacity=8GiB`, `h100-80g+2xt4`.

use std::env::{self, VarError};
use std::fmt;
use std::str::FromStr;

use bytesize::ByteSize;
use memcheck_core::cards::{self, Card};

use crate::faults::{Faults, FaultsError};

/// The environment variable that names the machine.
pub const MACHINE_VARIABLE: &str = "MEMCHECK_SIM";
/// The environment variable that names its faults.
pub const FAULTS_VARIABLE: &str = "MEMCHECK_SIM_FAULTS";
/// The machine where none is named.
pub const DEFAULT_MACHINE: &str = "h200";
/// The most devices that a machine can have.
pub const MAX_DEVICES: usize = 32;
/// The largest capacity of a device: 1 TiB.
pub const MAX_CAPACITY: u64 = 1 << 40;

/// One simulated device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceSpec {
    /// The card that it takes its name and its properties from.
    pub card: &'static Card,
    /// Its capacity in bytes: the sum of the live blocks, as they were
    /// requested, is never more. What rounding and a driver's own needs would
    /// take is not part of it.
    pub capacity: u64,
}

/// A machine: its devices by ordinal, and what goes wrong on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// From 1 to [`MAX_DEVICES`].
    pub devices: Vec<DeviceSpec>,
    /// None, unless asked for.
    pub faults: Faults,
}

/// Why a text is not a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No card of that name; the message has the nearest, or all of them.
    #[error("`{0}` is not a known card: {hint}", hint = card_hint(.0))]
    UnknownCard(String),
    /// An option other than `capacity`.
    #[error("`{0}` is not an option of a card: capacity=SIZE")]
    UnknownOption(String),
    /// The size cannot be read, is 0, or is larger than a device can be.
    #[error("`{0}` is not a capacity: write a size from 1B to 1TiB, such as 8GiB")]
    Capacity(String),
    /// No device, or too many.
    #[error("{0} devices: a machine has from 1 to {MAX_DEVICES}")]
    Count(usize),
    /// The faults cannot be read.
    #[error(transparent)]
    Faults(#[from] FaultsError),
    /// An environment variable that is not text.
    #[error("{0} is not valid UTF-8")]
    NotText(&'static str),
}

fn card_hint(id: &str) -> String {
    match cards::suggest(id) {
        Some(near) => format!("did you mean `{near}`?"),
        None => cards::CARDS.iter().map(|card| card.id).collect::<Vec<_>>().join(", "),
    }
}

impl Spec {
    /// The machine that [`MACHINE_VARIABLE`] and [`FAULTS_VARIABLE`] describe;
    /// one that is unset or empty means [`DEFAULT_MACHINE`] and no faults.
    pub fn from_env() -> Result<Self, SpecError> {
        let text = |variable| match env::var(variable) {
            Ok(text) => Ok(text),
            Err(VarError::NotPresent) => Ok(String::new()),
            Err(VarError::NotUnicode(_)) => Err(SpecError::NotText(variable)),
        };
        let machine = text(MACHINE_VARIABLE)?;
        let machine = if machine.trim().is_empty() { DEFAULT_MACHINE } else { &machine };
        Ok(machine.parse::<Self>()?.with_faults(text(FAULTS_VARIABLE)?.parse()?))
    }

    /// The same machine with these faults.
    pub fn with_faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut devices = Vec::new();
        for group in text.split('+') {
            let mut parts = group.split(',').map(str::trim);
            let (count, card) = counted(parts.next().unwrap_or_default());
            let card = cards::find(card).ok_or_else(|| SpecError::UnknownCard(card.to_owned()))?;
            let mut device = DeviceSpec { card, capacity: card.bytes };
            for option in parts {
                let size = option
                    .strip_prefix("capacity=")
                    .ok_or_else(|| SpecError::UnknownOption(option.to_owned()))?;
                device.capacity = size
                    .parse::<ByteSize>()
                    .ok()
                    .map(|size| size.as_u64())
                    .filter(|bytes| (1..=MAX_CAPACITY).contains(bytes))
                    .ok_or_else(|| SpecError::Capacity(size.to_owned()))?;
            }
            if !(1..=MAX_DEVICES - devices.len().min(MAX_DEVICES)).contains(&count) {
                return Err(SpecError::Count(devices.len().saturating_add(count)));
            }
            devices.extend(std::iter::repeat_n(device, count));
        }
        Ok(Self { devices, faults: Faults::default() })
    }
}

/// Splits `2xrtx4090` into 2 and `rtx4090`; without a count it is 1.
fn counted(text: &str) -> (usize, &str) {
    text.split_once(['x', 'X'])
        .filter(|(count, _)| !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()))
        .map_or((1, text), |(count, card)| (count.parse().unwrap_or(usize::MAX), card))
}

impl fmt::Display for Spec {
    /// A spelling that [`FromStr`] reads as the same devices; the faults are
    /// not part of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, same) in self.devices.chunk_by(|a, b| a == b).enumerate() {
            let (device, count) = (same[0], same.len());
            if index > 0 {
                f.write_str("+")?;
            }
            if count > 1 {
                write!(f, "{count}x")?;
            }
            f.write_str(device.card.id)?;
            if device.capacity != device.card.bytes {
                write!(f, ",capacity={}B", device.capacity)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_read_and_written_back() {
        for text in ["h200", "2xrtx4090", "rtx4090,capacity=8589934592B", "h100-80g+2xt4"] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
        let spec: Spec = "h200+2xRTX-4090,capacity=8GiB".parse().unwrap();
        assert_eq!(spec.devices.len(), 3);
        assert_eq!(spec.devices[2].capacity, 8 << 30);
        assert_eq!(spec.devices[2].card.id, "rtx4090");
        assert_eq!(spec.devices[0].capacity, spec.devices[0].card.bytes);
    }

    #[test]
    fn bad_machines_are_errors_that_say_what_is_right() {
        for (text, message) in [
            ("rtx4091", "`rtx4091` is not a known card: did you mean `rtx4090`?"),
            ("h200,vram=8GiB", "`vram=8GiB` is not an option of a card: capacity=SIZE"),
            (
                "h200,capacity=lots",
                "`lots` is not a capacity: write a size from 1B to 1TiB, such as 8GiB",
            ),
            (
                "h200,capacity=0",
                "`0` is not a capacity: write a size from 1B to 1TiB, such as 8GiB",
            ),
            ("0xh200", "0 devices: a machine has from 1 to 32"),
            ("20xh200+20xt4", "40 devices: a machine has from 1 to 32"),
        ] {
            assert_eq!(text.parse::<Spec>().unwrap_err().to_string(), message);
        }
        let listed = "toaster".parse::<Spec>().unwrap_err().to_string();
        assert!(listed.contains("rtx4090, "), "{listed}");
        assert!("h200+".parse::<Spec>().is_err());
        assert!("".parse::<Spec>().is_err());
    }
}
