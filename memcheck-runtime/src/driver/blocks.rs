//! Blocks for canaries. The functions are called by their names, as a program calls them, so that
//! the calls pass the probes.

use std::ffi::{c_int, c_uint};

use super::{DriverError, Handle, check, cuStreamCreate, cuStreamDestroy_v2};

/// The bytes of a block.
const SIZE: usize = 4096;
/// `CU_MEM_ATTACH_GLOBAL`.
const ATTACH_GLOBAL: c_uint = 1;
/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: c_uint = 1;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`.
const RELAXED: c_uint = 2;

unsafe extern "C" {
    #[cfg(not(feature = "candle"))]
    fn cuMemAlloc_v2(out: *mut u64, size: usize) -> c_int;
    fn cuMemHostAlloc(out: *mut Handle, size: usize, flags: c_uint) -> c_int;
    fn cuMemFreeHost(address: Handle) -> c_int;
    fn cuMemAllocManaged(out: *mut u64, size: usize, flags: c_uint) -> c_int;
    fn cuMemFree_v2(address: u64) -> c_int;
    fn cuStreamBeginCapture_v2(stream: Handle, mode: c_uint) -> c_int;
    fn cuStreamEndCapture(stream: Handle, graph: *mut Handle) -> c_int;
    fn cuMemAllocAsync(out: *mut u64, size: usize, stream: Handle) -> c_int;
    fn cuMemFreeAsync(address: u64, stream: Handle) -> c_int;
    fn cuGraphDestroy(graph: Handle) -> c_int;
}

/// Allocates and frees one block of the current device.
///
/// # Errors
/// If the driver refuses it.
#[cfg(not(feature = "candle"))]
pub(crate) fn device_block() -> Result<(), DriverError> {
    let mut block = 0;
    // SAFETY: the block is freed once, by the function that belongs to its allocation, and it is
    // neither read nor written.
    unsafe {
        check(cuMemAlloc_v2(&raw mut block, SIZE))?;
        check(cuMemFree_v2(block))
    }
}

/// Allocates and frees one block of pinned memory for the current device.
///
/// # Errors
/// If the driver refuses it.
pub(crate) fn pinned_block() -> Result<(), DriverError> {
    let mut block = std::ptr::null_mut();
    // SAFETY: the block is freed once, by the function that belongs to its allocation, and it is
    // neither read nor written.
    unsafe {
        check(cuMemHostAlloc(&raw mut block, SIZE, 0))?;
        check(cuMemFreeHost(block))
    }
}

/// Allocates and frees one block of managed memory for the current device.
///
/// # Errors
/// If the driver refuses it.
pub(crate) fn managed_block() -> Result<(), DriverError> {
    let mut block = 0;
    // SAFETY: the block is freed once, by the function that belongs to its allocation, and it is
    // neither read nor written.
    unsafe {
        check(cuMemAllocManaged(&raw mut block, SIZE, ATTACH_GLOBAL))?;
        check(cuMemFree_v2(block))
    }
}

/// Allocates and frees one block of the memory of a graph of the current device.
///
/// # Errors
/// If the driver refuses it.
pub(crate) fn graph_block() -> Result<(), DriverError> {
    let mut stream = std::ptr::null_mut();
    // SAFETY: the driver writes one handle to a local.
    check(unsafe { cuStreamCreate(&raw mut stream, NON_BLOCKING) })?;
    let captured = capture(stream);
    // SAFETY: the stream is destroyed once, and its capture has ended.
    let destroyed = check(unsafe { cuStreamDestroy_v2(stream) });
    captured.and(destroyed)
}

fn capture(stream: Handle) -> Result<(), DriverError> {
    let (mut block, mut graph) = (0, std::ptr::null_mut());
    // SAFETY: the block is freed once on the stream that allocated it, and it is neither read nor
    // written. The graph is never launched, and is destroyed once.
    unsafe {
        check(cuStreamBeginCapture_v2(stream, RELAXED))?;
        let allocated = check(cuMemAllocAsync(&raw mut block, SIZE, stream));
        let freed = allocated.and_then(|()| check(cuMemFreeAsync(block, stream)));
        check(cuStreamEndCapture(stream, &raw mut graph))?;
        check(cuGraphDestroy(graph)).and(freed)
    }
}
