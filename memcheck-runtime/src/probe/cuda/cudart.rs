//! The allocation functions of the runtime library (`libcudart`), which candle's C kernels call.
//!
//! Functions with the suffix `_ptsz` are the variants for the per-thread default stream.
#![expect(non_snake_case, reason = "the library's own names")]

use std::ffi::{c_int, c_uint, c_void};

use super::next::probes;

/// A pointer to device or host memory.
type Ptr = *mut c_void;
/// `cudaStream_t`, `cudaMemPool_t`, `cudaGraph_t`, `cudaGraphExec_t`.
type Handle = *mut c_void;

probes! {
    allocation fn cudaMalloc(out: *mut Ptr, size: usize) in device;
    ordered fn cudaMallocAsync(out: *mut Ptr, size: usize, stream: Handle) in device;
    ordered fn cudaMallocAsync_ptsz(out: *mut Ptr, size: usize, stream: Handle) in device;
    ordered fn cudaMallocFromPoolAsync(out: *mut Ptr, size: usize, pool: Handle, stream: Handle) in device;
    ordered fn cudaMallocFromPoolAsync_ptsz(out: *mut Ptr, size: usize, pool: Handle, stream: Handle) in device;
    pitched fn cudaMallocPitch(out: *mut Ptr, pitch: *mut usize, width: usize, height: usize) in device;
    allocation fn cudaMallocManaged(out: *mut Ptr, size: usize, flags: c_uint) in managed;
    allocation fn cudaMallocHost(out: *mut Ptr, size: usize) in pinned;
    allocation fn cudaHostAlloc(out: *mut Ptr, size: usize, flags: c_uint) in pinned;
    free fn cudaFree(address: Ptr);
    free fn cudaFreeAsync(address: Ptr, stream: Handle);
    free fn cudaFreeAsync_ptsz(address: Ptr, stream: Handle);
    free fn cudaFreeHost(address: Ptr);
    capture fn cudaStreamBeginCapture(stream: Handle, mode: c_uint);
    release fn cudaStreamEndCapture(stream: Handle, graph: *mut Handle);
    release fn cudaGraphExecUpdate(executable: Handle, graph: Handle, outcome: *mut c_void);
    release fn cudaGraphExecDestroy(executable: Handle);
    release fn cudaGraphDestroy(graph: Handle);
    trim fn cudaDeviceGraphMemTrim(device: c_int);
    launch fn cudaGraphUpload(executable: Handle, stream: Handle);
    launch fn cudaGraphLaunch(executable: Handle, stream: Handle);
}
