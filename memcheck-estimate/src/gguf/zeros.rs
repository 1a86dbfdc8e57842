//! A reader that returns zeros in place of the tensors of a file, and records which tensors were
//! read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom};

/// Larger than any buffer that is compared with it at once.
static NOTHING: [u8; 1 << 16] = [0; 1 << 16];

#[derive(Debug)]
pub(super) struct Zeros {
    position: u64,
    /// The names of the tensors by the position of their first byte.
    starts: BTreeMap<u64, String>,
    read: BTreeSet<String>,
}

impl Zeros {
    pub(super) fn new(starts: BTreeMap<u64, String>) -> Self {
        Self { position: 0, starts, read: BTreeSet::new() }
    }

    pub(super) fn was_read(&self, name: &str) -> bool {
        self.read.contains(name)
    }
}

impl Read for Zeros {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if let Some(name) = self.starts.get(&self.position) {
            self.read.insert(name.clone());
        }
        // candle reads into memory that the kernel has filled with zeros. Such memory takes no room
        // until it is written, so that a buffer of zeros stays as it is.
        for part in buffer.chunks_mut(NOTHING.len()) {
            if part[..] != NOTHING[..part.len()] {
                part.fill(0);
            }
        }
        self.position = self.position.saturating_add(buffer.len() as u64);
        Ok(buffer.len())
    }
}

impl Seek for Zeros {
    /// The end is behind every tensor, because the file can lack them.
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(distance) => u64::MAX.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        self.position = place.ok_or_else(|| Error::from(ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_read_at_any_position_and_a_tensor_is_recorded_once_it_is_read() -> Result<()> {
        let starts = [(32, "a".to_owned()), (1 << 50, "b".to_owned())];
        let mut zeros = Zeros::new(starts.into());
        assert_eq!(zeros.seek(SeekFrom::End(0))?, u64::MAX);
        zeros.seek(SeekFrom::Start(1 << 50))?;
        let mut buffer = vec![7; NOTHING.len() + 9];
        zeros.read_exact(&mut buffer)?;
        assert!(buffer.iter().all(|&byte| byte == 0));
        assert!(zeros.was_read("b") && !zeros.was_read("a"));
        assert_eq!(zeros.stream_position()?, (1 << 50) + buffer.len() as u64);
        assert!(zeros.seek(SeekFrom::End(1)).is_err());
        Ok(())
    }
}
