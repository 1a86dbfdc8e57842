//! The name and driver version of a device's card.

use crate::device::{self, Device};
#[cfg(all(feature = "cuda", not(feature = "sim")))]
use crate::driver;
#[cfg(feature = "cuda")]
use crate::driver::GpuHandle;

/// `CU_DEVICE_ATTRIBUTE_INTEGRATED`.
#[cfg(feature = "cuda")]
const INTEGRATED: std::ffi::c_int = 18;

/// The card of a device.
#[cfg_attr(not(feature = "candle"), expect(unreachable_pub, reason = "for memcheck-estimate"))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledCard {
    /// The name that the driver reports.
    pub name: String,
    /// The version of CUDA that the driver supports, as `major * 1000 + minor * 10`; `None` for a
    /// simulated card.
    pub driver: Option<i32>,
}

/// The card of a device; `None` if the device is not a GPU.
///
/// # Errors
/// If the driver returns an error.
pub(crate) fn card(device: &Device) -> device::Result<Option<InstalledCard>> {
    #[cfg(feature = "cuda")]
    if let Some(ordinal) = device::ordinal(device) {
        let name = GpuHandle::get(ordinal)?.name()?;
        #[cfg(feature = "sim")]
        let driver = None;
        #[cfg(not(feature = "sim"))]
        let driver = match driver::is_simulated() {
            true => None,
            false => Some(driver::version()?),
        };
        return Ok(Some(InstalledCard { name, driver }));
    }
    let _ = device;
    Ok(None)
}

/// True if host and device share one memory (`INTEGRATED`).
///
/// # Errors
/// If the driver returns an error.
#[cfg(feature = "cuda")]
pub(crate) fn shares_host_memory(device: &Device) -> device::Result<bool> {
    let Some(ordinal) = device::ordinal(device) else { return Ok(false) };
    Ok(GpuHandle::get(ordinal)?.has(INTEGRATED)?)
}

/// The capacity in bytes of each device of a real driver. A device whose capacity the driver does
/// not report is missing.
#[cfg(all(feature = "cuda", not(feature = "sim")))]
pub(crate) fn capacities() -> std::collections::BTreeMap<memcheck_core::space::Space, u64> {
    use memcheck_core::space::Space;
    let capacity_of =
        |ordinal: u16| Some((Space::Cuda(ordinal), GpuHandle::get(ordinal).ok()?.capacity().ok()?));
    (0..driver::count().unwrap_or(0)).filter_map(capacity_of).collect()
}
