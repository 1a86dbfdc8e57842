//! Linux on a processor whose stacks can be walked.

mod modules;
mod stack;

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

pub use modules::first as executable;
pub(crate) use modules::{ModuleBytes, loaded as loaded_modules};
pub(crate) use stack::{in_maps as stack_in_maps, mapping_at};

/// Maps `bytes` of zeroes for the rest of the process's life.
///
/// # Errors
/// If the system refuses the address space.
pub(crate) fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: the call makes an anonymous private mapping at an address that the kernel chooses, so
    // that it does not affect existing memory.
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

/// The memory of the calling thread's stack, according to the C library, which allocates for it.
pub(crate) fn reported_stack() -> Option<Range<u64>> {
    // SAFETY: the first call initializes the attributes, the second reads them and the third
    // destroys them. Every pointer is to a local.
    unsafe {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        let result = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (result == 0).then(|| low as u64..low as u64 + size as u64)
    }
}
