//! The path of systems without an instrument of their own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::ops::Range;
use std::ptr::NonNull;

/// The base address and the address range of the executable: unknown.
pub fn executable() -> Option<(u64, Range<u64>)> {
    None
}

/// The alignment of reserved memory: that of a cache line, and of every table.
const ALIGNMENT: usize = 64;

/// Allocates `bytes` of zeroes for the rest of the process's life. The system's allocator is asked
/// directly, so that nothing counts the block. It maps a block of this size, so that only the pages
/// that are touched cost memory.
///
/// # Errors
/// If the system refuses the memory.
pub(crate) fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
    // A block with more alignment than the usual one would be filled with zeroes page by page.
    let layout = Layout::from_size_align(bytes + ALIGNMENT, 1).map_err(io::Error::other)?;
    // SAFETY: the layout has a size.
    let memory = unsafe { System.alloc_zeroed(layout) };
    let skipped = memory.align_offset(ALIGNMENT);
    // SAFETY: `skipped` is less than the alignment, for which the block has room.
    NonNull::new(memory)
        .map(|memory| unsafe { memory.add(skipped) })
        .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicPtr, Ordering};

    use super::*;

    /// Miri reports memory that no static can reach as leaked.
    static RESERVED: [AtomicPtr<u8>; 3] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 3];

    #[test]
    fn reserved_memory_is_aligned_and_zeroed() {
        let sizes = [1, 100, if cfg!(miri) { 1 << 16 } else { 1 << 28 }];
        for (reserved, bytes) in RESERVED.iter().zip(sizes) {
            let memory = reserve(bytes).expect("memory");
            reserved.store(memory.as_ptr(), Ordering::Relaxed);
            assert_eq!(memory.as_ptr().align_offset(ALIGNMENT), 0);
            // SAFETY: the block has so many bytes.
            assert_eq!(unsafe { memory.add(bytes - 1).read() }, 0);
        }
    }
}
