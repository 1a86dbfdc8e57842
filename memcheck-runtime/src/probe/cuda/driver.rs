//! The allocation functions of the driver (`libcuda`), as its headers declare them.
//!
//! Functions with the suffix `_ptsz` are the variants for the per-thread default stream.
#![expect(non_snake_case, reason = "the driver's own names")]

use std::ffi::{c_int, c_uint, c_void};

use super::next::probes;

/// `CUdeviceptr`.
type DevicePtr = u64;
/// `CUstream`, `CUmemoryPool`, `CUgraph`, `CUgraphExec`.
type Handle = *mut c_void;
/// A pointer to host memory.
type HostPtr = *mut c_void;

probes! {
    allocation fn cuMemAlloc_v2(out: *mut DevicePtr, size: usize) in device;
    ordered fn cuMemAllocAsync(out: *mut DevicePtr, size: usize, stream: Handle) in device;
    ordered fn cuMemAllocAsync_ptsz(out: *mut DevicePtr, size: usize, stream: Handle) in device;
    ordered fn cuMemAllocFromPoolAsync(out: *mut DevicePtr, size: usize, pool: Handle, stream: Handle) in device;
    ordered fn cuMemAllocFromPoolAsync_ptsz(out: *mut DevicePtr, size: usize, pool: Handle, stream: Handle) in device;
    pitched fn cuMemAllocPitch_v2(out: *mut DevicePtr, pitch: *mut usize, width: usize, height: usize, element: c_uint) in device;
    allocation fn cuMemAllocManaged(out: *mut DevicePtr, size: usize, flags: c_uint) in managed;
    allocation fn cuMemAllocHost_v2(out: *mut HostPtr, size: usize) in pinned;
    allocation fn cuMemHostAlloc(out: *mut HostPtr, size: usize, flags: c_uint) in pinned;
    free fn cuMemFree_v2(address: DevicePtr);
    free fn cuMemFreeAsync(address: DevicePtr, stream: Handle);
    free fn cuMemFreeAsync_ptsz(address: DevicePtr, stream: Handle);
    free fn cuMemFreeHost(address: HostPtr);
    registration fn cuMemHostRegister_v2(address: HostPtr, size: usize, flags: c_uint) in pinned;
    unregistration fn cuMemHostUnregister(address: HostPtr);
    capture fn cuStreamBeginCapture_v2(stream: Handle, mode: c_uint);
    release fn cuStreamEndCapture(stream: Handle, graph: *mut Handle);
    allocation_node fn cuGraphAddMemAllocNode(node: *mut Handle, graph: Handle, after: *const Handle, count: usize, parameters: *mut c_void);
    node fn cuGraphAddNode(node: *mut Handle, graph: Handle, after: *const Handle, count: usize, parameters: *mut c_void);
    node fn cuGraphAddNode_v2(node: *mut Handle, graph: Handle, after: *const Handle, data: *const c_void, count: usize, parameters: *mut c_void);
    release fn cuGraphExecUpdate(executable: Handle, graph: Handle, node: *mut Handle, outcome: *mut c_int);
    release fn cuGraphExecUpdate_v2(executable: Handle, graph: Handle, outcome: *mut c_void);
    release fn cuGraphExecDestroy(executable: Handle);
    release fn cuGraphDestroy(graph: Handle);
    trim fn cuDeviceGraphMemTrim(device: c_int);
    launch fn cuGraphUpload(executable: Handle, stream: Handle);
    launch fn cuGraphLaunch(executable: Handle, stream: Handle);
}
