//! Memory for the instrument's tables. It is mapped directly, so that allocators do not count it
//! and only the pages that are touched cost memory.

use std::io;

use crate::os;

/// Maps a slice of `length` zeroed values for the rest of the process's life.
///
/// # Errors
/// If the system refuses the address space.
pub(crate) fn slice<T: Zeroed>(length: usize) -> io::Result<&'static [T]> {
    let memory = os::reserve(length * size_of::<T>())?;
    // SAFETY: the mapping has room for `length` values and is aligned to a cache line at least. It is zeroed,
    // which is a valid value of a `Zeroed` type, and it is never unmapped.
    Ok(unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), length) })
}

/// Types for which all bytes zero is a valid value, and that threads can share safely.
///
/// # Safety
/// Both must be true of the type.
pub(crate) unsafe trait Zeroed: Sync {}

// SAFETY: an atomic has the representation of an integer, and threads can share it safely.
unsafe impl Zeroed for std::sync::atomic::AtomicU64 {}
