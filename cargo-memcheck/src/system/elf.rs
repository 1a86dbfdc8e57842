//! Reads the machine that an executable was built for from its ELF header.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;

use memcheck_core::input;
use serde::{Deserialize, Serialize};

/// In Rust's names: `x86_64-linux`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ElfTarget(String);

impl fmt::Display for ElfTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ElfTarget {
    pub(crate) fn here() -> io::Result<Self> {
        Self::of(&std::env::current_exe()?)
    }

    pub(crate) fn of(executable: &Path) -> io::Result<Self> {
        // Up to `e_machine`, which is at one place for 32 and 64 bits.
        let mut header = [0; 20];
        input::open(executable, u64::MAX)?.read_exact(&mut header)?;
        Self::read(&header).ok_or_else(|| io::Error::other("it is not an ELF executable"))
    }

    fn read(header: &[u8; 20]) -> Option<Self> {
        let machine = [header[18], header[19]];
        let machine = match (&header[..4], header[5]) {
            (b"\x7fELF", 1) => u16::from_le_bytes(machine),
            (b"\x7fELF", 2) => u16::from_be_bytes(machine),
            _ => return None,
        };
        let architecture = match machine {
            3 => "x86".to_owned(),
            21 => "powerpc64".to_owned(),
            62 => "x86_64".to_owned(),
            183 => "aarch64".to_owned(),
            243 => "riscv64".to_owned(),
            other => format!("machine{other}"),
        };
        Some(Self(format!("{architecture}-linux")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_of_an_executable_is_read_from_its_header() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(ElfTarget::of(&own).unwrap(), ElfTarget::here().unwrap());
        let named = format!("{}-linux", std::env::consts::ARCH);
        assert_eq!(ElfTarget::here().unwrap().to_string(), named);
        let mut header = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\xb7\0";
        assert_eq!(ElfTarget::read(&header).unwrap().to_string(), "aarch64-linux");
        header[5] = 2;
        header[18..].copy_from_slice(&[0, 62]);
        assert_eq!(ElfTarget::read(&header).unwrap().to_string(), "x86_64-linux");
        header[0] = b'#';
        assert_eq!(ElfTarget::read(&header), None);
    }
}
