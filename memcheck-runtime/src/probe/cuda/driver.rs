//! The driver's allocation calls (`libcuda`), as its headers declare them.
//!
//! `_ptsz` are the variants for the per-thread default stream.
#![allow(non_snake_case, reason = "the library's own names")]

use std::ffi::{c_int, c_uint, c_void};

use memcheck_core::space::Space;

use super::{book, book_free, current_device};

/// `CUdeviceptr`.
type DevicePtr = u64;
/// `CUstream`, `CUmemoryPool`.
type Handle = *mut c_void;

mod next {
    use super::*;

    super::super::next::next! {
    fn cuMemAlloc_v2(out: *mut DevicePtr, size: usize);
    fn cuMemAllocAsync(out: *mut DevicePtr, size: usize, stream: Handle);
    fn cuMemAllocAsync_ptsz(out: *mut DevicePtr, size: usize, stream: Handle);
    fn cuMemAllocFromPoolAsync(out: *mut DevicePtr, size: usize, pool: Handle, stream: Handle);
    fn cuMemAllocFromPoolAsync_ptsz(out: *mut DevicePtr, size: usize, pool: Handle, stream: Handle);
    fn cuMemAllocManaged(out: *mut DevicePtr, size: usize, flags: c_uint);
    fn cuMemAllocHost_v2(out: *mut *mut c_void, size: usize);
    fn cuMemHostAlloc(out: *mut *mut c_void, size: usize, flags: c_uint);
    fn cuMemAllocPitch_v2(out: *mut DevicePtr, pitch: *mut usize, width: usize, height: usize, element: c_uint);
    fn cuMemFree_v2(address: DevicePtr);
    fn cuMemFreeAsync(address: DevicePtr, stream: Handle);
    fn cuMemFreeAsync_ptsz(address: DevicePtr, stream: Handle);
    fn cuMemFreeHost(address: *mut c_void);
    }
}

/// Probe of `cuMemAlloc_v2`.
///
/// # Safety
/// As for `cuMemAlloc_v2` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemAlloc_v2(out: *mut DevicePtr, size: usize) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemAlloc_v2`; on success the driver
    // has written an address to `out`.
    unsafe { book(next::cuMemAlloc_v2(out, size), out, size, current_device()) }
}

/// Probe of `cuMemAllocAsync`.
///
/// # Safety
/// As for `cuMemAllocAsync` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemAllocAsync(
    out: *mut DevicePtr,
    size: usize,
    stream: Handle,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemAllocAsync`; on success the driver
    // has written an address to `out`.
    unsafe { book(next::cuMemAllocAsync(out, size, stream), out, size, current_device()) }
}

/// Probe of `cuMemAllocAsync_ptsz`.
///
/// # Safety
/// As for `cuMemAllocAsync_ptsz` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemAllocAsync_ptsz(
    out: *mut DevicePtr,
    size: usize,
    stream: Handle,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemAllocAsync_ptsz`; on success the driver
    // has written an address to `out`.
    unsafe { book(next::cuMemAllocAsync_ptsz(out, size, stream), out, size, current_device()) }
}

/// Probe of `cuMemAllocFromPoolAsync`.
///
/// # Safety
/// As for `cuMemAllocFromPoolAsync` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemAllocFromPoolAsync(
    out: *mut DevicePtr,
    size: usize,
    pool: Handle,
    stream: Handle,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemAllocFromPoolAsync`; on success the driver
    // has written an address to `out`.
    unsafe {
        book(next::cuMemAllocFromPoolAsync(out, size, pool, stream), out, size, current_device())
    }
}

/// Probe of `cuMemAllocFromPoolAsync_ptsz`.
///
/// # Safety
/// As for `cuMemAllocFromPoolAsync_ptsz` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemAllocFromPoolAsync_ptsz(
    out: *mut DevicePtr,
    size: usize,
    pool: Handle,
    stream: Handle,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemAllocFromPoolAsync_ptsz`; on success the driver
    // has written an address to `out`.
    unsafe {
        book(
            next::cuMemAllocFromPoolAsync_ptsz(out, size, pool, stream),
            out,
            size,
            current_device(),
        )
    }
}

/// Probe of `cuMemAllocManaged`.
///
/// # Safety
/// As for `cuMemAllocManaged` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemAllocManaged(
    out: *mut DevicePtr,
    size: usize,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemAllocManaged`; on success the driver
    // has written an address to `out`.
    unsafe { book(next::cuMemAllocManaged(out, size, flags), out, size, Some(Space::Managed)) }
}

/// Probe of `cuMemAllocHost_v2`.
///
/// # Safety
/// As for `cuMemAllocHost_v2` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemAllocHost_v2(out: *mut *mut c_void, size: usize) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemAllocHost_v2`; on success the driver
    // has written an address to `out`.
    unsafe { book(next::cuMemAllocHost_v2(out, size), out.cast(), size, Some(Space::Pinned)) }
}

/// Probe of `cuMemHostAlloc`.
///
/// # Safety
/// As for `cuMemHostAlloc` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemHostAlloc(
    out: *mut *mut c_void,
    size: usize,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemHostAlloc`; on success the driver
    // has written an address to `out`.
    unsafe { book(next::cuMemHostAlloc(out, size, flags), out.cast(), size, Some(Space::Pinned)) }
}

/// Probe of `cuMemAllocPitch_v2`.
///
/// # Safety
/// As for `cuMemAllocPitch_v2` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemAllocPitch_v2(
    out: *mut DevicePtr,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: c_uint,
) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemAllocPitch_v2`; on success the driver
    // has written an address to `out` and the width of a row to `pitch`.
    unsafe {
        let result = next::cuMemAllocPitch_v2(out, pitch, width, height, element);
        let row = if result == super::SUCCESS { pitch.read() } else { width };
        book(result, out, row.saturating_mul(height), current_device())
    }
}

/// Probe of `cuMemFree_v2`.
///
/// # Safety
/// As for `cuMemFree_v2` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemFree_v2(address: DevicePtr) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemFree_v2`.
    book_free(address, || unsafe { next::cuMemFree_v2(address) })
}

/// Probe of `cuMemFreeAsync`.
///
/// # Safety
/// As for `cuMemFreeAsync` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemFreeAsync(address: DevicePtr, stream: Handle) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemFreeAsync`.
    book_free(address, || unsafe { next::cuMemFreeAsync(address, stream) })
}

/// Probe of `cuMemFreeAsync_ptsz`.
///
/// # Safety
/// As for `cuMemFreeAsync_ptsz` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemFreeAsync_ptsz(address: DevicePtr, stream: Handle) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemFreeAsync_ptsz`.
    book_free(address, || unsafe { next::cuMemFreeAsync_ptsz(address, stream) })
}

/// Probe of `cuMemFreeHost`.
///
/// # Safety
/// As for `cuMemFreeHost` of the CUDA driver API.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn cuMemFreeHost(address: *mut c_void) -> c_int {
    // SAFETY: the caller keeps the contract of `cuMemFreeHost`.
    book_free(address as u64, || unsafe { next::cuMemFreeHost(address) })
}
