//! A simulated machine as it is written: `[Nx]CARD[,capacity=SIZE][,mig]`, several
//! joined by `+`. The simulator reads the same grammar; here a mistake is found
//! before anything is built, and capacities are known and changed.

use memcheck_core::cards::{self, Card};
use memcheck_core::exit;
use memcheck_core::size::Size;
use memcheck_core::tolerance::Tolerance;

use crate::error::Expected;

/// Why there is no such machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MachineError {
    /// Not one of the cards.
    #[error("`{0}` is not a known card")]
    Card(String),
    /// Not an option of a card.
    #[error("`{0}` is not an option of a simulated card: capacity=SIZE or mig")]
    Option(String),
    /// The margin is all there is.
    #[error("a margin of {0} leaves nothing of {1}")]
    Margin(String, String),
}

impl Expected for MachineError {
    fn exit_code(&self) -> u8 {
        exit::USAGE
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Card(card) => Some(match cards::suggest(card) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "known cards: {}",
                    cards::CARDS.iter().map(|card| card.id).collect::<Vec<_>>().join(", ")
                ),
            }),
            Self::Margin(..) => Some("--margin 0% uses all of it".to_owned()),
            Self::Option(_) => None,
        }
    }
}

/// The option of a slice.
const MIG: &str = "mig";

/// One device of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gpu {
    /// The card that it is.
    pub(crate) card: &'static Card,
    /// What it holds, in bytes.
    pub(crate) capacity: u64,
    /// Whether it is a slice of the card.
    pub(crate) mig: bool,
}

/// A machine: its devices by ordinal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    /// At least one.
    pub(crate) gpus: Vec<Gpu>,
}

impl Machine {
    /// The devices of a list as well: a comma stands for a `+`, but for one in
    /// front of an option.
    pub(crate) fn of_list(text: &str) -> Result<Self, MachineError> {
        let mut machine = String::new();
        for (number, part) in text.split(',').map(str::trim).enumerate() {
            let is_option = part.contains('=') || part == MIG;
            let joint = if is_option { ',' } else { '+' };
            machine.extend((number > 0).then_some(joint));
            machine.push_str(part);
        }
        machine.parse()
    }

    /// The same machine with this much of each device left free.
    pub(crate) fn with_margin(&self, margin: Tolerance) -> Result<Self, MachineError> {
        let smaller = |gpu: &Gpu| Gpu { capacity: margin.floor(gpu.capacity), ..*gpu };
        let usable = Self { gpus: self.gpus.iter().map(smaller).collect() };
        match usable.gpus.iter().any(|gpu| gpu.capacity == 0) {
            true => Err(MachineError::Margin(margin.to_string(), format!("sim:{self}"))),
            false => Ok(usable),
        }
    }

    /// The same machine with no device larger than this.
    pub(crate) fn no_larger_than(&self, bytes: u64) -> Self {
        let smaller = |gpu: &Gpu| Gpu { capacity: gpu.capacity.min(bytes), ..*gpu };
        Self { gpus: self.gpus.iter().map(smaller).collect() }
    }
}

impl std::str::FromStr for Machine {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut gpus = Vec::new();
        for group in text.split('+') {
            let mut parts = group.split(',').map(str::trim);
            let card = parts.next().unwrap_or_default();
            let (count, card) = match card.split_once(['x', 'X']) {
                Some((count, rest)) => match count.parse::<u16>() {
                    Ok(count) if count > 0 => (count, rest),
                    _ => (1, card),
                },
                None => (1, card),
            };
            let card = cards::find(card).ok_or_else(|| MachineError::Card(card.to_owned()))?;
            let (mut capacity, mut mig) = (card.bytes, false);
            for option in parts {
                if option == MIG {
                    mig = true;
                    continue;
                }
                let size = option.strip_prefix("capacity=").and_then(|size| size.parse().ok());
                capacity = size
                    .map(|Size(bytes)| bytes)
                    .filter(|&bytes| bytes > 0)
                    .ok_or_else(|| MachineError::Option(option.to_owned()))?;
            }
            gpus.extend(std::iter::repeat_n(Gpu { card, capacity, mig }, count.into()));
        }
        Ok(Self { gpus })
    }
}

/// As the simulator reads it.
impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, alike) in self.gpus.chunk_by(|a, b| a == b).enumerate() {
            let Gpu { card, capacity, mig } = alike[0];
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
    fn a_machine_is_its_devices_and_reads_as_it_is_written() {
        let card = |id| cards::find(id).unwrap();
        let (small, t4) = (card("rtx4090"), card("t4"));
        assert_eq!(
            machine("2xRTX4090,capacity=8GiB+t4").gpus,
            [
                Gpu { card: small, capacity: 8 << 30, mig: false },
                Gpu { card: small, capacity: 8 << 30, mig: false },
                Gpu { card: t4, capacity: t4.bytes, mig: false },
            ]
        );
        for (text, written) in [
            ("rtx4090", "rtx4090"),
            ("4090+rtx4090", "2xrtx4090"),
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
    }

    #[test]
    fn a_margin_is_taken_of_each_device() {
        let machine = machine("t4,capacity=1000B+rtx4090,capacity=2000B");
        let capacities = |machine: &Machine| -> Vec<u64> {
            machine.gpus.iter().map(|gpu| gpu.capacity).collect()
        };
        let with_margin = |margin: &str| machine.with_margin(margin.parse().unwrap());
        assert_eq!(capacities(&with_margin("5%").unwrap()), [950, 1900]);
        assert_eq!(capacities(&with_margin("300 B").unwrap()), [700, 1700]);
        for all in ["100%", "105%", "1000 B", "8388608 TiB"] {
            let error = with_margin(all).unwrap_err();
            assert!(error.to_string().contains("leaves nothing of sim:t4,"), "{error}");
        }
        assert_eq!(capacities(&machine.no_larger_than(1500)), [1000, 1500]);
    }

    #[test]
    fn what_is_no_machine_is_refused() {
        for text in ["", "toaster", "0xt4", "t4,capacity=0B", "t4,memory=1GiB", "t4++t4"] {
            assert!(text.parse::<Machine>().is_err(), "{text}");
        }
    }
}
