//! Of `functional/c_heap.rs`: a program with a `malloc` of its own, which all tests of an executable
//! share.

use memcheck_runtime::{Trial, mem_test};

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut u8;
    fn __libc_free(address: *mut u8);
}

/// The program's own allocator, as jemalloc defines one.
///
/// # Safety
/// That of the C library's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn malloc(size: usize) -> *mut u8 {
    // SAFETY: the contract is the same.
    unsafe { __libc_malloc(size) }
}

/// The function that belongs to it.
///
/// # Safety
/// That of the C library's function.
#[unsafe(no_mangle)]
unsafe extern "C" fn free(address: *mut u8) {
    // SAFETY: the contract is the same.
    unsafe { __libc_free(address) }
}

#[mem_test(baseline = false, max_c_growth = "0 B")]
fn asks(trial: &mut Trial) -> candle_core::Result<()> {
    trial.iterate(|_| Ok(()))
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn does_not_ask(trial: &mut Trial) -> candle_core::Result<()> {
    trial.iterate(|_| Ok(()))
}
