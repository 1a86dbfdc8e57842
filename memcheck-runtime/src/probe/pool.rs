//! The driver's figures of its default memory pool.
//!
//! A free takes effect when the stream reaches it, so the counters are read after a synchronize.
//! They are the driver's counters (estimates on the simulated device), not the program's. They are
//! reported, and a limit applies to them only on request.

use std::ffi::c_int;

use crate::device::{self, Device};
use crate::driver::{self, DriverError, GpuHandle, Handle, check};

/// `CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED`.
const POOLS_SUPPORTED: c_int = 115;
/// `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`.
const RESERVED: c_int = 5;
/// `CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH`.
const PEAK_RESERVED: c_int = 6;

/// The pool's counters, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DriverPool {
    pub(crate) reserved: u64,
    pub(crate) peak_reserved: u64,
}

fn default_pool(device: &Device) -> device::Result<Option<Handle>> {
    let Some(ordinal) = device::ordinal(device) else { return Ok(None) };
    let gpu = GpuHandle::get(ordinal)?;
    // Without this, the call below would be an error, and a device without pools is not at fault.
    if !gpu.has(POOLS_SUPPORTED)? {
        return Ok(None);
    }
    Ok(Some(gpu.default_pool()?))
}

fn attribute(pool: Handle, attribute: c_int) -> Result<u64, DriverError> {
    let mut value: u64 = 0;
    // SAFETY: the pool is the default pool of a device and lives as long as the device. This
    // attribute is a 64-bit integer.
    let result = unsafe { driver::cuMemPoolGetAttribute(pool, attribute, (&raw mut value).cast()) };
    check(result).map(|()| value)
}

/// Waits for the device and reads its pool. `None` if the device has no pool.
pub(crate) fn read(device: &Device) -> device::Result<Option<DriverPool>> {
    let Some(pool) = default_pool(device)? else { return Ok(None) };
    device::synchronize(device)?;
    Ok(Some(DriverPool {
        reserved: attribute(pool, RESERVED)?,
        peak_reserved: attribute(pool, PEAK_RESERVED)?,
    }))
}

/// Resets the pool's high-water mark.
pub(crate) fn reset_peak(device: &Device) -> device::Result<()> {
    let Some(pool) = default_pool(device)? else { return Ok(()) };
    let mut zero: u64 = 0;
    // SAFETY: the pool is the default pool of a device and lives as long as the device. This
    // attribute is a 64-bit integer that may be set to 0 only.
    let result =
        unsafe { driver::cuMemPoolSetAttribute(pool, PEAK_RESERVED, (&raw mut zero).cast()) };
    Ok(check(result)?)
}

/// Returns unused memory of the pool to the device.
pub(crate) fn trim(device: &Device) -> device::Result<()> {
    let Some(pool) = default_pool(device)? else { return Ok(()) };
    // SAFETY: the pool is the default pool of a device and lives as long as the device.
    Ok(check(unsafe { driver::cuMemPoolTrimTo(pool, 0) })?)
}
