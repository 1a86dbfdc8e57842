//! What will be wanted soon is fetched while the workload goes on.
//!
//! Between two allocations a workload has used the caches for itself, so what
//! the allocation path reads is mostly far away: that is what it costs, not its
//! instructions.

/// Bytes that come with one fetch.
pub(crate) const LINE: usize = 64;

/// The line at `place` will be read. Any address will do: nothing is read by
/// this itself.
#[inline(always)]
pub(crate) fn to_read<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which has no effect on memory and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// The line at `place`, which another core may have, will be written.
#[inline(always)]
pub(crate) fn to_write<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
