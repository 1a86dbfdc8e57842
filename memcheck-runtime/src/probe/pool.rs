//! The driver's figures of its default memory pool.
//!
//! A free takes effect when the stream reaches it, so the counters are read after a synchronize.
//! They are the driver's counters (estimates on the simulated device), not the program's. They are
//! reported, and a limit applies to them only on request.

use candle_core::Device;
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{result, sys};

/// The pool's counters, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DriverPool {
    pub(crate) reserved: u64,
    pub(crate) peak_reserved: u64,
}

fn default_pool(device: &Device) -> candle_core::Result<Option<sys::CUmemoryPool>> {
    let Device::Cuda(cuda) = device else { return Ok(None) };
    let stream = cuda.cuda_stream();
    stream.context().bind_to_thread().w()?;
    if !stream.context().has_async_alloc() {
        return Ok(None);
    }
    // SAFETY: the handle is that of a live context's device.
    let pool = unsafe { result::device::get_default_mem_pool(stream.context().cu_device()) }.w()?;
    Ok(Some(pool))
}

fn attribute(
    pool: sys::CUmemoryPool,
    attribute: sys::CUmemPool_attribute,
) -> candle_core::Result<u64> {
    let mut value: u64 = 0;
    // SAFETY: the pool is the default pool of a device and lives as long as the device. This
    // attribute is a 64-bit integer.
    unsafe { result::mem_pool::get_attribute(pool, attribute, (&raw mut value).cast()) }.w()?;
    Ok(value)
}

/// Waits for the device and reads its pool. `None` if the device has no pool.
pub(crate) fn read(device: &Device) -> candle_core::Result<Option<DriverPool>> {
    let Some(pool) = default_pool(device)? else { return Ok(None) };
    device.synchronize()?;
    use sys::CUmemPool_attribute::{
        CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT as CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH as HIGH,
    };
    Ok(Some(DriverPool {
        reserved: attribute(pool, CURRENT)?,
        peak_reserved: attribute(pool, HIGH)?,
    }))
}

/// Resets the pool's high-water mark.
pub(crate) fn reset_peak(device: &Device) -> candle_core::Result<()> {
    let Some(pool) = default_pool(device)? else { return Ok(()) };
    let mut zero: u64 = 0;
    let high = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
    // SAFETY: the pool is the default pool of a device and lives as long as the device. This
    // attribute is a 64-bit integer that may be set to 0 only.
    unsafe { result::mem_pool::set_attribute(pool, high, (&raw mut zero).cast()) }.w()
}

/// Returns unused memory of the pool to the device.
pub(crate) fn trim(device: &Device) -> candle_core::Result<()> {
    let Some(pool) = default_pool(device)? else { return Ok(()) };
    // SAFETY: the pool is the default pool of a device and lives as long as the device.
    unsafe { result::mem_pool::trim_to(pool, 0) }.w()
}
