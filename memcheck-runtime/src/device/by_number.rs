//! Devices by their number, for programs without candle's types. The program opens its devices
//! itself. memcheck uses the primary context of a GPU, which the program's context mostly is.

use super::Result;
#[cfg(feature = "cuda")]
use crate::driver::{self, DriverError};

/// False: the program can use the host, a GPU or several, on each leg.
pub(crate) const IS_OPENED_FOR_TEST: bool = false;

pub(crate) const HOST: Device = Device::Host;

/// A device of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    Host,
    #[cfg(feature = "cuda")]
    Gpu(driver::PrimaryContext),
}

/// The reason why a device, or a value of a case, cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

#[cfg(feature = "cuda")]
impl From<DriverError> for Error {
    fn from(error: DriverError) -> Self {
        Self(error.to_string())
    }
}

/// Makes an error of a text.
pub(crate) fn error(text: impl std::fmt::Display) -> Error {
    Error(text.to_string())
}

/// The number of a GPU; `None` for the host.
pub(crate) fn ordinal(device: &Device) -> Option<u16> {
    match device {
        Device::Host => None,
        #[cfg(feature = "cuda")]
        Device::Gpu(gpu) => Some(gpu.ordinal()),
    }
}

/// Opens a GPU. If the program does not link the driver, this is the host.
///
/// # Errors
/// If the driver refuses.
#[cfg(feature = "cuda")]
pub(crate) fn open(ordinal: u16) -> Result<Device> {
    if !driver::is_linked() {
        return Ok(HOST);
    }
    Ok(Device::Gpu(driver::PrimaryContext::retain(ordinal)?))
}

/// Waits for the work of the device.
///
/// # Errors
/// If the driver returns an error.
pub(crate) fn synchronize(device: &Device) -> Result<()> {
    #[cfg(feature = "cuda")]
    with_current(device, driver::synchronize)?;
    let _ = device;
    Ok(())
}

/// Calls `act` with the device as the calling thread's current one.
///
/// # Errors
/// If the driver refuses, or that of `act`.
#[cfg(feature = "cuda")]
pub(crate) fn with_current(
    device: &Device,
    act: impl FnOnce() -> std::result::Result<(), DriverError>,
) -> Result<()> {
    match device {
        Device::Host => Ok(()),
        Device::Gpu(gpu) => Ok(gpu.with_current(act)?),
    }
}

/// Allocates and frees one block on a GPU.
///
/// # Errors
/// If the driver refuses the block.
#[cfg(feature = "cuda")]
pub(crate) fn allocate_block(device: &Device) -> Result<()> {
    with_current(device, crate::driver::blocks::device_block)
}

/// The free of [`allocate_block`] has returned its error.
///
/// # Errors
/// None.
#[cfg(feature = "cuda")]
pub(crate) fn check_free(_: &Device) -> Result<()> {
    Ok(())
}

/// A program without candle has no pool of candle's.
pub(crate) fn start_pool() {}
