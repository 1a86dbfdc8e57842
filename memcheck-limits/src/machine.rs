//! The notation of a simulated machine: `[Nx]CARD[,capacity=SIZE][,mig]`, joined by `+`, such as
//! `2xrtx4090` or `rtx4090,capacity=8GiB+2xt4`. The command parses it to report errors before the
//! build, the simulator to create the machine.

use crate::cards::{self, Card};
use crate::size::Size;
use crate::tolerance::Tolerance;

/// The most devices that a simulated machine can have.
pub const MAX_DEVICES: usize = 32;
/// The largest capacity of a device: 1 TiB.
pub const MAX_CAPACITY: u64 = 1 << 40;
const MAX_LISTED: usize = 1 << 16;

/// The reason why a text is not a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// The name is not one of the known cards.
    #[error("`{0}` is not a known card")]
    Card(String),
    /// The text is not an option of a card.
    #[error("`{0}` is not an option of a simulated card: capacity=SIZE or mig")]
    Option(String),
    /// The margin is as large as the device.
    #[error("a margin of {0} leaves no memory of {1}")]
    Margin(String, String),
    /// The size cannot be parsed, is 0, or is above [`MAX_CAPACITY`].
    #[error("`{0}` is not a capacity: write a size from 1B to 1TiB, such as 8GiB")]
    Capacity(String),
    /// The card shares its memory with the host, which has no second one.
    #[error("`{0}` shares the memory of the host, so that a machine has no other device")]
    Shared(&'static str),
    /// The number of devices is 0 or too large.
    #[error("a machine has 1 to {most} devices, not {count}")]
    Count {
        /// The number of devices in the text.
        count: usize,
        /// The most devices that are allowed.
        most: usize,
    },
}

impl MachineError {
    /// A suggestion to correct the text.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Card(card) => Some(match cards::suggest(card) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let known: Vec<&str> = cards::CARDS.iter().map(|card| card.id).collect();
                    format!("known cards: {}", known.join(", "))
                }
            }),
            Self::Margin(..) => Some("`--margin 0%` uses the whole capacity".to_owned()),
            Self::Option(_) | Self::Capacity(_) | Self::Shared(_) | Self::Count { .. } => None,
        }
    }
}

const MIG: &str = "mig";

/// One device of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineGpu {
    /// The card that it takes its name and properties from.
    pub card: &'static Card,
    /// Bytes that live blocks, in requested sizes, never exceed. Driver memory is not modeled.
    pub capacity: u64,
    /// True for a slice in MIG mode. NVML has separate handles for the slice and the card.
    pub mig: bool,
}

/// A machine, with its devices in the order of their ordinals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The devices, at least one.
    pub gpus: Vec<MachineGpu>,
}

impl Machine {
    /// Parses a list of any length, with commas between devices, except before an option.
    pub fn of_list(text: &str) -> Result<Self, MachineError> {
        let mut machine = String::new();
        for (number, part) in text.split(',').map(str::trim).enumerate() {
            let is_option = part.contains('=') || part == MIG;
            let joint = if is_option { ',' } else { '+' };
            machine.extend((number > 0).then_some(joint));
            machine.push_str(part);
        }
        Self::parse_devices(&machine, MAX_LISTED)
    }

    /// The same machine with `margin` of each device left free; an error if nothing is left.
    pub fn with_margin(&self, margin: Tolerance) -> Result<Self, MachineError> {
        let smaller =
            |gpu: &MachineGpu| MachineGpu { capacity: margin.floor(gpu.capacity), ..*gpu };
        let usable = Self { gpus: self.gpus.iter().map(smaller).collect() };
        match usable.gpus.iter().any(|gpu| gpu.capacity == 0) {
            true => Err(MachineError::Margin(margin.to_string(), format!("sim:{self}"))),
            false => Ok(usable),
        }
    }

    /// The same machine with the capacity of each device limited to `bytes`.
    pub fn no_larger_than(&self, bytes: u64) -> Self {
        let smaller = |gpu: &MachineGpu| MachineGpu { capacity: gpu.capacity.min(bytes), ..*gpu };
        Self { gpus: self.gpus.iter().map(smaller).collect() }
    }

    fn parse_devices(text: &str, most: usize) -> Result<Self, MachineError> {
        let mut gpus = Vec::new();
        for group in text.split('+') {
            let mut parts = group.split(',').map(str::trim);
            let (count, card) = split_count(parts.next().unwrap_or_default());
            let card = cards::find(card).ok_or_else(|| MachineError::Card(card.to_owned()))?;
            let mut gpu = MachineGpu { card, capacity: card.bytes, mig: false };
            for option in parts {
                if option == MIG {
                    gpu.mig = true;
                } else if let Some(size) = option.strip_prefix("capacity=") {
                    gpu.capacity = capacity(size)?;
                } else {
                    return Err(MachineError::Option(option.to_owned()));
                }
            }
            let all = gpus.len().saturating_add(count);
            if count == 0 || all > most {
                return Err(MachineError::Count { count: all, most });
            }
            gpus.extend(std::iter::repeat_n(gpu, count));
        }
        Ok(Self { gpus })
    }
}

impl std::str::FromStr for Machine {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let machine = Self::parse_devices(text, MAX_DEVICES)?;
        match machine.gpus.iter().find(|gpu| gpu.card.memory.is_shared()) {
            Some(gpu) if machine.gpus.len() > 1 => Err(MachineError::Shared(gpu.card.id)),
            _ => Ok(machine),
        }
    }
}

/// Splits `2xrtx4090` into 2 and `rtx4090`. Without a count the number is 1.
fn split_count(text: &str) -> (usize, &str) {
    text.split_once(['x', 'X'])
        .filter(|(count, _)| !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()))
        .map_or((1, text), |(count, card)| (count.parse().unwrap_or(usize::MAX), card))
}

fn capacity(text: &str) -> Result<u64, MachineError> {
    let size = text.parse().ok().map(|Size(bytes)| bytes);
    size.filter(|bytes| (1..=MAX_CAPACITY).contains(bytes))
        .ok_or_else(|| MachineError::Capacity(text.to_owned()))
}

/// The notation must parse to the same devices again.
impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, alike) in self.gpus.chunk_by(|a, b| a == b).enumerate() {
            let MachineGpu { card, capacity, mig } = alike[0];
            let plus = if number == 0 { "" } else { "+" };
            let count = if alike.len() == 1 { String::new() } else { format!("{}x", alike.len()) };
            write!(f, "{plus}{count}{}", card.id)?;
            if capacity != card.bytes {
                write!(f, ",capacity={capacity}B")?;
            }
            if mig {
                write!(f, ",{MIG}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(text: &str) -> Machine {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_machine_lists_its_devices_and_parses_its_own_text() {
        let card = |id| cards::find(id).unwrap();
        let (small, t4) = (card("rtx4090"), card("t4"));
        assert_eq!(
            machine("2xRTX4090,capacity=8GiB+t4").gpus,
            [
                MachineGpu { card: small, capacity: 8 << 30, mig: false },
                MachineGpu { card: small, capacity: 8 << 30, mig: false },
                MachineGpu { card: t4, capacity: t4.bytes, mig: false },
            ]
        );
        for (text, written) in [
            ("rtx4090", "rtx4090"),
            ("4090+rtx4090", "2xrtx4090"),
            ("h100-80g+2xt4,mig", "h100-80g+2xt4,mig"),
            ("t4,capacity=1KiB + 2xh200", "t4,capacity=1024B+2xh200"),
            ("h200, mig ,capacity=1KiB+h200", "h200,capacity=1024B,mig+h200"),
        ] {
            assert_eq!(machine(text).to_string(), written);
            assert_eq!(machine(written), machine(text));
        }
    }

    #[test]
    fn devices_are_listed_with_commas_too() {
        for (list, text) in [
            ("2xrtx4090", "2xrtx4090"),
            ("rtx4090, h100-80g", "rtx4090+h100-80g"),
            ("t4,capacity=8GiB,2xt4,rtx4090", "t4,capacity=8GiB+2xt4+rtx4090"),
            ("t4+t4,capacity=1GiB", "t4+t4,capacity=1GiB"),
            ("h200,mig,t4", "h200,mig+t4"),
        ] {
            assert_eq!(Machine::of_list(list).unwrap(), machine(text), "{list}");
        }
        assert!(Machine::of_list("rtx4090,toaster").is_err());
        // A list is not simulated, so it can be larger.
        assert_eq!(Machine::of_list("40xt4").unwrap().gpus.len(), 40);
    }

    #[test]
    fn a_margin_is_subtracted_from_each_device() {
        let machine = machine("t4,capacity=1000B+rtx4090,capacity=2000B");
        let capacities = |machine: &Machine| -> Vec<u64> {
            machine.gpus.iter().map(|gpu| gpu.capacity).collect()
        };
        let with_margin = |margin: &str| machine.with_margin(margin.parse().unwrap());
        assert_eq!(capacities(&with_margin("5%").unwrap()), [950, 1900]);
        assert_eq!(capacities(&with_margin("300 B").unwrap()), [700, 1700]);
        for all in ["100%", "105%", "1000 B", "8388608 TiB"] {
            let error = with_margin(all).unwrap_err();
            assert!(error.to_string().contains("leaves no memory of sim:t4,"), "{error}");
        }
        assert_eq!(capacities(&machine.no_larger_than(1500)), [1000, 1500]);
    }

    #[test]
    fn an_invalid_machine_is_an_error_with_the_valid_form() {
        for (text, message) in [
            ("rtx4091", "`rtx4091` is not a known card"),
            ("", "`` is not a known card"),
            ("t4++t4", "`` is not a known card"),
            ("t4,", "`` is not an option of a simulated card: capacity=SIZE or mig"),
            (
                "h200,vram=8GiB",
                "`vram=8GiB` is not an option of a simulated card: capacity=SIZE or mig",
            ),
            (
                "t4,capacity=0B",
                "`0B` is not a capacity: write a size from 1B to 1TiB, such as 8GiB",
            ),
            (
                "t4,capacity=1025GiB",
                "`1025GiB` is not a capacity: write a size from 1B to 1TiB, such as 8GiB",
            ),
            ("0xh200", "a machine has 1 to 32 devices, not 0"),
            ("40xt4", "a machine has 1 to 32 devices, not 40"),
            ("20xh200+20xt4", "a machine has 1 to 32 devices, not 40"),
            (
                "gb10+t4",
                "`gb10` shares the memory of the host, so that a machine has no other device",
            ),
        ] {
            assert_eq!(text.parse::<Machine>().unwrap_err().to_string(), message, "{text}");
        }
        assert_eq!(machine("32xt4,capacity=1TiB").gpus.len(), MAX_DEVICES);
        let hint = |text: &str| text.parse::<Machine>().unwrap_err().hint();
        assert_eq!(hint("rtx4091").unwrap(), "did you mean `rtx4090`?");
        assert!(hint("toaster").unwrap().contains("rtx4090, "));
        assert_eq!(hint("40xt4"), None);
    }
}
