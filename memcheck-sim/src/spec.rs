//! Which machine to simulate: the cards, their capacity, and its faults.
//!
//! `[Nx]CARD[,capacity=SIZE][,mig]`, several joined by `+`: `h200`, `2xrtx4090`,
//! `rtx4090,capacity=8GiB`, `h100-80g+2xt4`.

use std::env::{self, VarError};
use std::fmt;
use std::str::FromStr;

use bytesize::ByteSize;
use memcheck_core::cards::{self, Card};

use crate::faults::{Faults, FaultsError};
use crate::processes::{Process, ProcessesError, processes};

/// The environment variable that names the machine.
pub const MACHINE_VARIABLE: &str = "MEMCHECK_SIM";
/// The environment variable that names its faults.
pub const FAULTS_VARIABLE: &str = "MEMCHECK_SIM_FAULTS";
/// The environment variable that names processes of others on it.
pub const PROCESSES_VARIABLE: &str = "MEMCHECK_SIM_PROCESSES";
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
    /// Whether it is a slice of a card in MIG mode: NVML knows it by another
    /// handle than the card.
    pub mig: bool,
}

/// A machine: its devices by ordinal, and what goes wrong on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// From 1 to [`MAX_DEVICES`].
    pub devices: Vec<DeviceSpec>,
    /// None, unless asked for.
    pub faults: Faults,
    /// Processes of others. None, unless asked for.
    pub processes: Vec<Process>,
}

/// Why a text is not a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No card of that name; the message has the nearest, or all of them.
    #[error("`{0}` is not a known card: {hint}", hint = card_hint(.0))]
    UnknownCard(String),
    /// An option other than `capacity` and `mig`.
    #[error("`{0}` is not an option of a card: capacity=SIZE or mig")]
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
    /// The processes cannot be read, or are on no device.
    #[error(transparent)]
    Processes(#[from] ProcessesError),
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
    /// The machine that [`MACHINE_VARIABLE`], [`FAULTS_VARIABLE`] and
    /// [`PROCESSES_VARIABLE`] describe; one that is unset or empty means
    /// [`DEFAULT_MACHINE`], no faults and no processes.
    pub fn from_env() -> Result<Self, SpecError> {
        let text = |variable| match env::var(variable) {
            Ok(text) => Ok(text),
            Err(VarError::NotPresent) => Ok(String::new()),
            Err(VarError::NotUnicode(_)) => Err(SpecError::NotText(variable)),
        };
        let machine = text(MACHINE_VARIABLE)?;
        let machine = if machine.trim().is_empty() { DEFAULT_MACHINE } else { &machine };
        let spec = machine.parse::<Self>()?.with_faults(text(FAULTS_VARIABLE)?.parse()?);
        Ok(spec.with_processes(processes(&text(PROCESSES_VARIABLE)?)?)?)
    }

    /// The same machine with these faults.
    pub fn with_faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// The same machine with these processes of others.
    ///
    /// # Errors
    ///
    /// One is on a device that the machine does not have.
    pub fn with_processes(self, processes: Vec<Process>) -> Result<Self, ProcessesError> {
        let devices = self.devices.len();
        match processes.iter().find(|process| process.device >= devices) {
            Some(&Process { pid, device, .. }) => {
                Err(ProcessesError::NoDevice { pid, device, devices })
            }
            None => Ok(Self { processes, ..self }),
        }
    }

    /// Makes no device larger than `capacity`, beside what others hold of it.
    pub fn limit(&mut self, capacity: u64) {
        for (ordinal, device) in self.devices.iter_mut().enumerate() {
            let others = held(&self.processes, ordinal);
            device.capacity = device.capacity.min(capacity.saturating_add(others));
        }
    }
}

/// What these processes hold of a device.
pub(crate) fn held(processes: &[Process], device: usize) -> u64 {
    let on_it = processes.iter().filter(|process| process.device == device);
    on_it.map(|process| process.bytes).fold(0, u64::saturating_add)
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut devices = Vec::new();
        for group in text.split('+') {
            let mut parts = group.split(',').map(str::trim);
            let (count, card) = counted(parts.next().unwrap_or_default());
            let card = cards::find(card).ok_or_else(|| SpecError::UnknownCard(card.to_owned()))?;
            let mut device = DeviceSpec { card, capacity: card.bytes, mig: false };
            for option in parts {
                if option == "mig" {
                    device.mig = true;
                    continue;
                }
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
        Ok(Self { devices, faults: Faults::default(), processes: Vec::new() })
    }
}

/// Splits `2xrtx4090` into 2 and `rtx4090`; without a count it is 1.
fn counted(text: &str) -> (usize, &str) {
    text.split_once(['x', 'X'])
        .filter(|(count, _)| !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()))
        .map_or((1, text), |(count, card)| (count.parse().unwrap_or(usize::MAX), card))
}

impl fmt::Display for Spec {
    /// A spelling that [`FromStr`] reads as the same devices; faults and
    /// processes are not part of it.
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
            if device.mig {
                f.write_str(",mig")?;
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
        for text in ["h200", "2xrtx4090", "rtx4090,capacity=8589934592B", "h100-80g+2xt4,mig"] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
        let spec: Spec = "h200+2xRTX-4090,capacity=8GiB".parse().unwrap();
        assert_eq!(spec.devices.len(), 3);
        assert_eq!(spec.devices[2].capacity, 8 << 30);
        assert_eq!(spec.devices[2].card.id, "rtx4090");
        assert_eq!(spec.devices[0].capacity, spec.devices[0].card.bytes);
    }

    #[test]
    fn what_a_machine_is_made_to_hold_lies_beside_what_others_hold() {
        let others = processes("1:a:10GiB@1,2:b:4GiB@1").unwrap();
        let mut spec = "2xrtx4090".parse::<Spec>().unwrap().with_processes(others).unwrap();
        spec.limit(8 << 30);
        assert_eq!(spec.devices[0].capacity, 8 << 30);
        assert_eq!(spec.devices[1].capacity, 22 << 30);
        spec.limit(u64::MAX);
        assert_eq!(spec.devices[1].capacity, 22 << 30);
        let nowhere = processes("7:a:1GiB@2").unwrap();
        assert_eq!(
            spec.with_processes(nowhere).unwrap_err().to_string(),
            "process 7 is on device 2, and the machine has 2"
        );
    }

    #[test]
    fn bad_machines_are_errors_that_say_what_is_right() {
        for (text, message) in [
            ("rtx4091", "`rtx4091` is not a known card: did you mean `rtx4090`?"),
            ("h200,vram=8GiB", "`vram=8GiB` is not an option of a card: capacity=SIZE or mig"),
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
