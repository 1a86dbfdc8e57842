//! The description of the simulated machine: its devices, its faults, and the processes of other
//! users. `memcheck_limits::machine` parses the devices.

use std::env::{self, VarError};
use std::fmt;
use std::str::FromStr;

pub use memcheck_limits::machine::{MAX_CAPACITY, MAX_DEVICES, MachineGpu as DeviceSpec};
use memcheck_limits::machine::{Machine, MachineError};
use memcheck_limits::values::{Contents, ContentsError};

use crate::faults::{Faults, FaultsError};
use crate::processes::{Process, ProcessesError, processes};
use crate::uuid::uuid_text;

/// The environment variable that describes the machine.
pub const MACHINE_VARIABLE: &str = "MEMCHECK_SIM";
/// The environment variable that lists the machine's faults.
pub const FAULTS_VARIABLE: &str = "MEMCHECK_SIM_FAULTS";
/// The environment variable that lists the processes of other users on the machine.
pub const PROCESSES_VARIABLE: &str = "MEMCHECK_SIM_PROCESSES";
/// The environment variable that limits the contents of device memory.
pub const VALUES_VARIABLE: &str = "MEMCHECK_VALUES";
/// The environment variable that hides devices from a program that was built for real devices
/// (feature `standalone`). A build for the simulated device ignores it, because it is a setting for
/// real GPUs, and `--device` describes the simulated machine completely.
pub const VISIBLE_VARIABLE: &str = "CUDA_VISIBLE_DEVICES";
/// The default machine.
pub const DEFAULT_MACHINE: &str = "h200";

/// A machine: its devices by ordinal, its faults and the processes on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The devices, from 1 to [`MAX_DEVICES`]; none if all are hidden.
    pub devices: Vec<DeviceSpec>,
    /// The number of each device on the machine. It differs from the device's index if other
    /// devices are hidden.
    pub(crate) numbers: Vec<u32>,
    /// The faults; none by default.
    pub faults: Faults,
    /// The processes of other users; none by default.
    pub processes: Vec<Process>,
    /// The contents of device memory.
    pub values: Contents,
}

/// The error of a text that does not describe a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The devices are invalid; the message contains a correction.
    #[error("{0}{hint}", hint = hint(.0))]
    Machine(#[from] MachineError),
    /// The text of the faults is invalid.
    #[error(transparent)]
    Faults(#[from] FaultsError),
    /// The text of the processes is invalid, or one is on a device that does not exist.
    #[error(transparent)]
    Processes(#[from] ProcessesError),
    /// The text of the contents is invalid.
    #[error("{VALUES_VARIABLE}: {0}")]
    Values(#[from] ContentsError),
    /// An environment variable is not valid UTF-8.
    #[error("{0} is not valid UTF-8")]
    NotText(&'static str),
}

fn hint(error: &MachineError) -> String {
    error.hint().map(|hint| format!(": {hint}")).unwrap_or_default()
}

impl Spec {
    /// Reads the machine that [`MACHINE_VARIABLE`], [`FAULTS_VARIABLE`], [`PROCESSES_VARIABLE`] and
    /// [`VALUES_VARIABLE`] describe. A variable that is unset or empty means [`DEFAULT_MACHINE`],
    /// no faults, no processes or the default contents.
    pub fn from_env() -> Result<Self, SpecError> {
        let text = |variable| match env::var(variable) {
            Ok(text) => Ok(text),
            Err(VarError::NotPresent) => Ok(String::new()),
            Err(VarError::NotUnicode(_)) => Err(SpecError::NotText(variable)),
        };
        let machine = text(MACHINE_VARIABLE)?;
        let machine = if machine.trim().is_empty() { DEFAULT_MACHINE } else { &machine };
        let spec = machine.parse::<Self>()?.with_faults(text(FAULTS_VARIABLE)?.parse()?);
        let spec = spec.with_processes(processes(&text(PROCESSES_VARIABLE)?)?)?;
        let values = match text(VALUES_VARIABLE)?.as_str() {
            "" => Contents::Auto,
            text => text.parse()?,
        };
        let spec = spec.with_values(values);
        // Only a program that was built for real GPUs selects devices with this variable.
        match env::var(VISIBLE_VARIABLE) {
            Ok(words) if cfg!(feature = "standalone") => Ok(spec.visible(&words)),
            _ => Ok(spec),
        }
    }

    /// Returns the machine as a program sees it that sets [`VISIBLE_VARIABLE`] to these words.
    ///
    /// A word is the number of a device or the start of its UUID. The devices appear in the order
    /// of the words, up to the first word that matches no device. If the first device is a slice,
    /// the program sees only that slice. Otherwise it sees only whole GPUs.
    fn visible(self, words: &str) -> Self {
        let known = |word: &str| -> Option<usize> {
            let matches = |&place: &usize| match word.parse::<u32>() {
                Ok(number) => self.numbers[place] == number,
                Err(_) if word.len() > 4 => {
                    uuid_text(self.numbers[place], self.devices[place].mig).starts_with(word)
                }
                Err(_) => false,
            };
            (0..self.devices.len()).find(matches)
        };
        let mut places: Vec<usize> = words.split(',').map(str::trim).map_while(known).collect();
        match places.first().map(|&first| self.devices[first].mig) {
            Some(true) => places.truncate(1),
            _ => places.retain(|&place| !self.devices[place].mig),
        }
        let moved = |process: &Process| -> Option<Process> {
            let device = places.iter().position(|&place| place == process.device)?;
            Some(Process { device, ..process.clone() })
        };
        Self {
            devices: places.iter().map(|&place| self.devices[place]).collect(),
            numbers: places.iter().map(|&place| self.numbers[place]).collect(),
            processes: self.processes.iter().filter_map(moved).collect(),
            faults: self.faults,
            values: self.values,
        }
    }

    /// Replaces the faults.
    pub fn with_faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// Replaces the contents of device memory.
    pub fn with_values(self, values: Contents) -> Self {
        Self { values, ..self }
    }

    /// Replaces the processes of other users.
    ///
    /// # Errors
    ///
    /// If a process is on a device that the machine does not have.
    pub fn with_processes(self, processes: Vec<Process>) -> Result<Self, ProcessesError> {
        let devices = self.devices.len();
        match processes.iter().find(|process| process.device >= devices) {
            Some(&Process { pid, device, .. }) => {
                Err(ProcessesError::NoDevice { pid, device, devices })
            }
            None => Ok(Self { processes, ..self }),
        }
    }

    /// Limits the capacity of each device to `capacity` bytes plus those that processes of other
    /// users hold.
    pub fn limit(&mut self, capacity: u64) {
        for (ordinal, device) in self.devices.iter_mut().enumerate() {
            let others = held(&self.processes, ordinal);
            device.capacity = device.capacity.min(capacity.saturating_add(others));
        }
    }
}

/// Returns the bytes that these processes hold on a device.
pub(crate) fn held(processes: &[Process], device: usize) -> u64 {
    let on_it = processes.iter().filter(|process| process.device == device);
    on_it.map(|process| process.bytes).fold(0, u64::saturating_add)
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Machine { gpus: devices } = text.parse()?;
        let numbers = (0..).take(devices.len()).collect();
        let (faults, processes) = (Faults::default(), Vec::new());
        Ok(Self { devices, numbers, faults, processes, values: Contents::Auto })
    }
}

impl fmt::Display for Spec {
    /// Writes a text that [`FromStr`] parses to the same devices. It does not contain faults,
    /// processes and contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Machine { gpus: self.devices.clone() }.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_capacity_does_not_include_the_bytes_of_other_processes() {
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
            "process 7 is on device 2, but the machine has 2 devices"
        );
    }

    #[test]
    fn a_program_sees_the_named_devices_in_the_given_order() {
        let others = processes("1:a:1GiB,2:b:2GiB@2").unwrap();
        let spec = "h200+t4+l4".parse::<Spec>().unwrap().with_processes(others).unwrap();
        let visible = |spec: &Spec, words: &str| -> Vec<(u32, &str)> {
            let Spec { devices, numbers, .. } = spec.clone().visible(words);
            numbers.into_iter().zip(devices.iter().map(|device| device.card.id)).collect()
        };
        assert_eq!(visible(&spec, "2,0"), [(2, "l4"), (0, "h200")]);
        let second = "GPU-6d656d63-6865-636b-2d73-696d00000001";
        assert_eq!(visible(&spec, &format!("{second},0")), [(1, "t4"), (0, "h200")]);
        assert_eq!(visible(&spec, "1,7,0"), [(1, "t4")]);
        assert!(visible(&spec, "").is_empty() && visible(&spec, "-1").is_empty());
        let reordered = spec.visible("2,1");
        assert_eq!(reordered.processes.len(), 1, "the process on the hidden device is hidden");
        assert_eq!((reordered.processes[0].pid, reordered.processes[0].device), (2, 0));
        let sliced: Spec = "2xh200,mig+t4".parse().unwrap();
        let slice = "MIG-6d656d63-6865-636b-2d6d-696700000001";
        assert_eq!(visible(&sliced, &format!("{slice},2")), [(1, "h200")]);
        assert_eq!(visible(&sliced, "2,0"), [(2, "t4")]);
    }

    #[test]
    fn a_machine_is_formatted_back_and_an_error_contains_its_correction() {
        let text = "rtx4090,capacity=8589934592B+2xt4,mig";
        assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        for (text, message) in [
            ("rtx4091", "`rtx4091` is not a known card: did you mean `rtx4090`?"),
            ("40xt4", "a machine has 1 to 32 devices, not 40"),
        ] {
            assert_eq!(text.parse::<Spec>().unwrap_err().to_string(), message);
        }
    }
}
