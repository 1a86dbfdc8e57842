//! A file of numbers that is mapped into memory. The system keeps what a process has stored there,
//! however the process ends.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::AtomicU64;

/// Creates a file with this content, and maps its first `count` numbers for the rest of the process's
/// life.
///
/// # Errors
/// If the content is shorter, or if the system refuses the file or the mapping.
pub(crate) fn map_numbers(
    path: &Path,
    content: &[u8],
    count: usize,
) -> io::Result<&'static [AtomicU64]> {
    let length = count * size_of::<u64>();
    if content.len() < length {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
    // All bytes are written, because a store to a mapped hole ends the process on a full disk.
    file.write_all(content)?;
    // SAFETY: the call makes a mapping at an address that the kernel chooses, so that it does not
    // affect existing memory. The file is open during the call.
    let memory = unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), length, rights, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping has the length of these numbers, is aligned to a page, and is never removed.
    // Atomic numbers may change at any time.
    Ok(unsafe { std::slice::from_raw_parts(memory.cast(), count) })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn a_stored_number_is_in_the_file_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        let numbers = map_numbers(&path, b"12345678rest", 1).unwrap();
        numbers[0].store(u64::from_ne_bytes(*b"abcdefgh"), Relaxed);
        assert_eq!(std::fs::read(&path).unwrap(), b"abcdefghrest");
        assert!(map_numbers(&path, b"1234567", 1).is_err());
        assert!(map_numbers(&folder.path().join("no/folder"), b"12345678", 1).is_err());
    }
}
