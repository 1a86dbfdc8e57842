//! Which card a device is.

use candle_core::Device;

/// Which card a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// As its driver calls it.
    pub name: String,
    /// The version of CUDA that its driver has, as `major * 1000 + minor * 10`;
    /// `None` where it is simulated.
    pub driver: Option<i32>,
}

/// The card of a device; `None` of one that is no GPU.
///
/// # Errors
/// When the driver does not answer.
pub fn card(device: &Device) -> candle_core::Result<Option<Card>> {
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
        return Ok(Some(Card { name, driver }));
    }
    let _ = device;
    Ok(None)
}

/// What each device of a real driver holds, in bytes; none where it does not answer.
#[cfg(all(feature = "cuda", not(feature = "sim")))]
pub(crate) fn capacities() -> std::collections::BTreeMap<memcheck_core::space::Space, u64> {
    use candle_core::cuda_backend::cudarc::driver::result::device;
    use memcheck_core::space::Space;
    let of = |ordinal: u16| {
        let device = device::get(ordinal.into()).ok()?;
        // SAFETY: a device that the driver has just named.
        let bytes = unsafe { device::total_mem(device) }.ok()?;
        Some((Space::Cuda(ordinal), bytes as u64))
    };
    let count = device::get_count().ok().and_then(|count| u16::try_from(count).ok());
    (0..count.unwrap_or(0)).filter_map(of).collect()
}
