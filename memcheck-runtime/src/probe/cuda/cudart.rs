//! The runtime library's allocation calls (`libcudart`), which candle's C kernels make.
//!
//! `_ptsz` are the variants for the per-thread default stream.
#![allow(non_snake_case, reason = "the library's own names")]

use std::ffi::{c_int, c_uint, c_void};

use memcheck_core::space::Space;

use super::{book, book_free, current_device};

/// `cudaStream_t`, `cudaMemPool_t`.
type Handle = *mut c_void;

mod next {
    use super::*;

    super::super::next::next! {
    fn cudaMalloc(out: *mut *mut c_void, size: usize);
    fn cudaMallocAsync(out: *mut *mut c_void, size: usize, stream: Handle);
    fn cudaMallocAsync_ptsz(out: *mut *mut c_void, size: usize, stream: Handle);
    fn cudaMallocFromPoolAsync(out: *mut *mut c_void, size: usize, pool: Handle, stream: Handle);
    fn cudaMallocFromPoolAsync_ptsz(out: *mut *mut c_void, size: usize, pool: Handle, stream: Handle);
    fn cudaMallocManaged(out: *mut *mut c_void, size: usize, flags: c_uint);
    fn cudaMallocHost(out: *mut *mut c_void, size: usize);
    fn cudaHostAlloc(out: *mut *mut c_void, size: usize, flags: c_uint);
    fn cudaMallocPitch(out: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize);
    fn cudaFree(address: *mut c_void);
    fn cudaFreeAsync(address: *mut c_void, stream: Handle);
    fn cudaFreeAsync_ptsz(address: *mut c_void, stream: Handle);
    fn cudaFreeHost(address: *mut c_void);
    }
}

/// Probe of `cudaMalloc`.
///
/// # Safety
/// As for `cudaMalloc` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMalloc(out: *mut *mut c_void, size: usize) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaMalloc`; on success the driver
    // has written an address to `out`.
    unsafe { book(next::cudaMalloc(out, size), out.cast(), size, current_device()) }
}

/// Probe of `cudaMallocAsync`.
///
/// # Safety
/// As for `cudaMallocAsync` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocAsync(
    out: *mut *mut c_void,
    size: usize,
    stream: Handle,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaMallocAsync`; on success the driver
    // has written an address to `out`.
    unsafe { book(next::cudaMallocAsync(out, size, stream), out.cast(), size, current_device()) }
}

/// Probe of `cudaMallocAsync_ptsz`.
///
/// # Safety
/// As for `cudaMallocAsync_ptsz` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocAsync_ptsz(
    out: *mut *mut c_void,
    size: usize,
    stream: Handle,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaMallocAsync_ptsz`; on success the driver
    // has written an address to `out`.
    unsafe {
        book(next::cudaMallocAsync_ptsz(out, size, stream), out.cast(), size, current_device())
    }
}

/// Probe of `cudaMallocFromPoolAsync`.
///
/// # Safety
/// As for `cudaMallocFromPoolAsync` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocFromPoolAsync(
    out: *mut *mut c_void,
    size: usize,
    pool: Handle,
    stream: Handle,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaMallocFromPoolAsync`; on success the driver
    // has written an address to `out`.
    unsafe {
        book(
            next::cudaMallocFromPoolAsync(out, size, pool, stream),
            out.cast(),
            size,
            current_device(),
        )
    }
}

/// Probe of `cudaMallocFromPoolAsync_ptsz`.
///
/// # Safety
/// As for `cudaMallocFromPoolAsync_ptsz` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocFromPoolAsync_ptsz(
    out: *mut *mut c_void,
    size: usize,
    pool: Handle,
    stream: Handle,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaMallocFromPoolAsync_ptsz`; on success the driver
    // has written an address to `out`.
    unsafe {
        book(
            next::cudaMallocFromPoolAsync_ptsz(out, size, pool, stream),
            out.cast(),
            size,
            current_device(),
        )
    }
}

/// Probe of `cudaMallocManaged`.
///
/// # Safety
/// As for `cudaMallocManaged` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocManaged(
    out: *mut *mut c_void,
    size: usize,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaMallocManaged`; on success the driver
    // has written an address to `out`.
    unsafe {
        book(next::cudaMallocManaged(out, size, flags), out.cast(), size, Some(Space::Managed))
    }
}

/// Probe of `cudaMallocHost`.
///
/// # Safety
/// As for `cudaMallocHost` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocHost(out: *mut *mut c_void, size: usize) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaMallocHost`; on success the driver
    // has written an address to `out`.
    unsafe { book(next::cudaMallocHost(out, size), out.cast(), size, Some(Space::Pinned)) }
}

/// Probe of `cudaHostAlloc`.
///
/// # Safety
/// As for `cudaHostAlloc` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaHostAlloc(
    out: *mut *mut c_void,
    size: usize,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaHostAlloc`; on success the driver
    // has written an address to `out`.
    unsafe { book(next::cudaHostAlloc(out, size, flags), out.cast(), size, Some(Space::Pinned)) }
}

/// Probe of `cudaMallocPitch`.
///
/// # Safety
/// As for `cudaMallocPitch` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaMallocPitch(
    out: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaMallocPitch`; on success the driver
    // has written an address to `out` and the width of a row to `pitch`.
    unsafe {
        let result = next::cudaMallocPitch(out, pitch, width, height);
        let row = if result == super::SUCCESS { pitch.read() } else { width };
        book(result, out.cast(), row.saturating_mul(height), current_device())
    }
}

/// Probe of `cudaFree`.
///
/// # Safety
/// As for `cudaFree` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaFree(address: *mut c_void) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaFree`.
    book_free(address as u64, || unsafe { next::cudaFree(address) })
}

/// Probe of `cudaFreeAsync`.
///
/// # Safety
/// As for `cudaFreeAsync` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaFreeAsync(address: *mut c_void, stream: Handle) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaFreeAsync`.
    book_free(address as u64, || unsafe { next::cudaFreeAsync(address, stream) })
}

/// Probe of `cudaFreeAsync_ptsz`.
///
/// # Safety
/// As for `cudaFreeAsync_ptsz` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaFreeAsync_ptsz(address: *mut c_void, stream: Handle) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaFreeAsync_ptsz`.
    book_free(address as u64, || unsafe { next::cudaFreeAsync_ptsz(address, stream) })
}

/// Probe of `cudaFreeHost`.
///
/// # Safety
/// As for `cudaFreeHost` of the CUDA runtime API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cudaFreeHost(address: *mut c_void) -> c_int {
    // SAFETY: the caller keeps the contract of `cudaFreeHost`.
    book_free(address as u64, || unsafe { next::cudaFreeHost(address) })
}
