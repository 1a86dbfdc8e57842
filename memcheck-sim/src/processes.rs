//! Simulated processes of other users. Their memory is not available to the program.
//!
//! A process is written `4711:python:60GiB`; a comma separates several processes. A suffix `@1`
//! puts the process on the device with that ordinal. Without a suffix, it is on the first device.

use bytesize::ByteSize;
use memcheck_limits::size::counted;

/// A process that holds memory of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub pid: u32,
    /// The process name.
    pub name: String,
    /// The number of bytes that it holds.
    pub bytes: u64,
    /// The ordinal of its device.
    pub device: usize,
}

/// The error of a text that does not describe processes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProcessesError {
    /// The text is not `PID:NAME:SIZE`.
    #[error(
        "`{0}` is not a process: expected PID:NAME:SIZE or PID:NAME:SIZE@DEVICE, such as 4711:python:60GiB"
    )]
    Spelling(String),
    /// The machine does not have the device.
    #[error(
        "process {pid} is on device {device}, but the machine has {count}",
        count = counted(*devices as u64, "device", "devices")
    )]
    NoDevice {
        /// The process id.
        pid: u32,
        /// The ordinal of its device.
        device: usize,
        /// The number of devices of the machine.
        devices: usize,
    },
}

/// Parses a list of processes; an empty text is an empty list.
///
/// # Errors
///
/// If one of the processes is misspelt.
pub fn processes(text: &str) -> Result<Vec<Process>, ProcessesError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| parse_process(part).ok_or_else(|| ProcessesError::Spelling(part.to_owned())))
        .collect()
}

fn parse_process(text: &str) -> Option<Process> {
    let (process, device) = text.split_once('@').unwrap_or((text, "0"));
    let mut parts = process.split(':').map(str::trim);
    let (pid, name, size) = (parts.next()?, parts.next()?, parts.next()?);
    (parts.next().is_none() && !name.is_empty()).then_some(())?;
    Some(Process {
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        bytes: size.parse::<ByteSize>().ok()?.as_u64(),
        device: device.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_is_parsed_with_its_device() {
        let on = |pid, name: &str, bytes, device| Process { pid, name: name.into(), bytes, device };
        assert_eq!(
            processes("4711:python:60GiB, 12:a b:5B@3"),
            Ok(vec![on(4711, "python", 60 << 30, 0), on(12, "a b", 5, 3)])
        );
        assert_eq!(processes(""), Ok(Vec::new()));
        for wrong in ["python", "a:b:1B", "1:b", "1:b:much", "1::1B", "1:b:1B:2", "1:b:1B@x"] {
            let error = processes(wrong).unwrap_err();
            assert!(error.to_string().contains("such as 4711:python:60GiB"), "{wrong}: {error}");
        }
    }
}
