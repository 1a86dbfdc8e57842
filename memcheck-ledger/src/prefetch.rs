//! Prefetches of data that the allocation path will need soon, while the workload runs.
//!
//! Between two allocations a workload fills the caches with its own data. The cost of the
//! allocation path is therefore mostly that of cache misses, not of its instructions.

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Prefetches the cache line at `address` for reading. Any address is allowed, because a prefetch
/// does not access memory.
#[allow(dead_code, reason = "only walks of stacks read ahead")]
#[inline(always)]
pub(crate) fn to_read<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that does not change memory and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch is a hint that does not change memory and never faults.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{address}]", address = in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Prefetches the cache line at `address`, which another core may own, for writing.
#[inline(always)]
pub(crate) fn to_write<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that does not change memory and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch is a hint that does not change memory and never faults.
    unsafe {
        std::arch::asm!(
            "prfm pstl1keep, [{address}]", address = in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
