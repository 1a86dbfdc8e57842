//! The name and driver version of a device's card.

use candle_core::Device;

/// The card of a device.
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
pub fn card(device: &Device) -> candle_core::Result<Option<InstalledCard>> {
    #[cfg(feature = "cuda")]
    if let Device::Cuda(cuda) = device {
        use candle_core::cuda_backend::WrapErr;
        let name = cuda.cuda_stream().context().name().w()?;
        #[cfg(feature = "sim")]
        let driver = None;
        #[cfg(not(feature = "sim"))]
        let driver = match super::cuda::is_simulated() {
            true => None,
            false => Some(super::cuda::driver_version()?),
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
pub(crate) fn shares_host_memory(device: &Device) -> candle_core::Result<bool> {
    use candle_core::cuda_backend::WrapErr;
    use candle_core::cuda_backend::cudarc::driver::sys::CUdevice_attribute;
    let Device::Cuda(cuda) = device else { return Ok(false) };
    let integrated = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED;
    Ok(cuda.cuda_stream().context().attribute(integrated).w()? != 0)
}

/// The capacity in bytes of each device of a real driver. A device whose capacity the driver does
/// not report is missing.
#[cfg(all(feature = "cuda", not(feature = "sim")))]
pub(crate) fn capacities() -> std::collections::BTreeMap<memcheck_core::space::Space, u64> {
    use candle_core::cuda_backend::cudarc::driver::result::device;
    use memcheck_core::space::Space;
    let capacity_of = |ordinal: u16| {
        let device = device::get(ordinal.into()).ok()?;
        // SAFETY: the driver has just returned this device.
        let bytes = unsafe { device::total_mem(device) }.ok()?;
        Some((Space::Cuda(ordinal), bytes as u64))
    };
    let count = device::get_count().ok().and_then(|count| u16::try_from(count).ok());
    (0..count.unwrap_or(0)).filter_map(capacity_of).collect()
}
