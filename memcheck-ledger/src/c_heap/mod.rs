//! The probe of the C heap. It defines `malloc` and its relatives under their own names.
//!
//! A symbol of the executable takes precedence over the symbol in the C library, also for the calls
//! that shared libraries and the C library itself make (`strdup`, `getline`). Each function here
//! forwards to the C library's own definition (`__libc_malloc`), and records the block while the C
//! heap is counted. The symbols are weak, so that a program with a `malloc` of its own still links.
//! Its blocks are not seen, which the canary shows.
//!
//! Rust's allocator calls `malloc` too. These calls are not counted, because its blocks belong to
//! `host` ([`own`]). The size of a block is the one that the program requested.
//!
//! `functions` are the definitions. Blocks of `valloc` and `pvalloc` are not counted.

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(memcheck_portable)
))]
mod functions;
pub mod own;

use memcheck_limits::quiet;

use crate::{ledger, site};

/// Starts to count the blocks of the C heap. On a system without this probe, nothing is counted.
pub fn start() {
    #[cfg(all(
        target_os = "linux",
        target_env = "gnu",
        any(target_arch = "x86_64", target_arch = "aarch64"),
        not(memcheck_portable)
    ))]
    functions::link();
    site::prepare_for_c_heap();
    ledger::count_c_heap();
}

/// Allocates and frees one block, as C code in the executable does.
pub fn block() {
    quiet::lifted(|| {
        // SAFETY: the block is freed once, by the function that belongs to its allocation, and it
        // is neither read nor written.
        unsafe { libc::free(std::hint::black_box(libc::malloc(4096))) };
    });
}

/// Makes a shared library, the C library, allocate one block, and frees it.
pub fn block_of_library() {
    quiet::lifted(|| {
        // SAFETY: the text has a terminator, and the copy is freed once, as `strdup` requires.
        unsafe { libc::free(std::hint::black_box(libc::strdup(c"canary".as_ptr())).cast()) };
    });
}
