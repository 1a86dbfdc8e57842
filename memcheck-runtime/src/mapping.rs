//! Memory for the instrument's own tables: address space that costs pages only
//! where it is touched, and that no allocator knows of.

use std::io;
use std::ptr::NonNull;

/// Maps `bytes` of zeroes that stay for the life of the process.
///
/// # Errors
/// When the system refuses the address space.
pub(crate) fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: an anonymous private mapping at an address of the kernel's
    // choice; nothing else is passed.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}

/// A slice of `length` values in memory of its own, for the life of the process.
///
/// # Errors
/// When the system refuses the address space.
pub(crate) fn slice<T: Zeroed>(length: usize) -> io::Result<&'static [T]> {
    let memory = reserve(length * size_of::<T>())?;
    // SAFETY: the mapping has room for `length` values, is aligned to a page,
    // is zeroed, which is a value of a `Zeroed` type, and is never unmapped.
    Ok(unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), length) })
}

/// Types of which all bytes zero is a value, and that may be shared.
///
/// # Safety
/// Both must hold.
pub(crate) unsafe trait Zeroed: Sync {}

// SAFETY: atomics are integers, and shared by design.
unsafe impl Zeroed for std::sync::atomic::AtomicU64 {}
