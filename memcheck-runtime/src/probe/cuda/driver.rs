//! The allocation functions of the driver (`libcuda`), as its headers declare them.
//!
//! Functions with the suffix `_ptsz` are the variants for the per-thread default stream.
#![expect(non_snake_case, reason = "the driver's own names")]

use std::ffi::{c_uint, c_void};

use super::next::probes;

/// `CUdeviceptr`.
type DevicePtr = u64;
/// `CUstream`, `CUmemoryPool`.
type Handle = *mut c_void;
/// A pointer to host memory.
type HostPtr = *mut c_void;

probes! {
    allocation fn cuMemAlloc_v2(out: *mut DevicePtr, size: usize) in device;
    allocation fn cuMemAllocAsync(out: *mut DevicePtr, size: usize, stream: Handle) in device;
    allocation fn cuMemAllocAsync_ptsz(out: *mut DevicePtr, size: usize, stream: Handle) in device;
    allocation fn cuMemAllocFromPoolAsync(out: *mut DevicePtr, size: usize, pool: Handle, stream: Handle) in device;
    allocation fn cuMemAllocFromPoolAsync_ptsz(out: *mut DevicePtr, size: usize, pool: Handle, stream: Handle) in device;
    pitched fn cuMemAllocPitch_v2(out: *mut DevicePtr, pitch: *mut usize, width: usize, height: usize, element: c_uint) in device;
    allocation fn cuMemAllocManaged(out: *mut DevicePtr, size: usize, flags: c_uint) in managed;
    allocation fn cuMemAllocHost_v2(out: *mut HostPtr, size: usize) in pinned;
    allocation fn cuMemHostAlloc(out: *mut HostPtr, size: usize, flags: c_uint) in pinned;
    free fn cuMemFree_v2(address: DevicePtr);
    free fn cuMemFreeAsync(address: DevicePtr, stream: Handle);
    free fn cuMemFreeAsync_ptsz(address: DevicePtr, stream: Handle);
    free fn cuMemFreeHost(address: HostPtr);
}
