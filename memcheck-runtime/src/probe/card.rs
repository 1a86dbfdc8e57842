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
