//! Devices of candle.

use candle_core::{DType, DeviceLocation, Tensor};

pub(crate) use candle_core::Device;
pub use candle_core::Error;

use super::Result;
#[cfg(feature = "cuda")]
use crate::driver::DriverError;

/// True if every test on a GPU uses the device that memcheck opens.
pub(crate) const IS_OPENED_FOR_TEST: bool = true;

pub(crate) const HOST: Device = Device::Cpu;

#[cfg(feature = "cuda")]
impl From<DriverError> for Error {
    fn from(error: DriverError) -> Self {
        Self::Cuda(Box::new(error))
    }
}

/// Makes an error of a text.
pub(crate) fn error(text: impl std::fmt::Display) -> Error {
    Error::msg(text)
}

/// The number of a GPU; `None` for the host.
pub(crate) fn ordinal(device: &Device) -> Option<u16> {
    match device.location() {
        DeviceLocation::Cuda { gpu_id } => Some(u16::try_from(gpu_id).unwrap_or(u16::MAX)),
        _ => None,
    }
}

/// Opens a GPU.
///
/// # Errors
/// If the driver refuses.
#[cfg(feature = "cuda")]
pub(crate) fn open(ordinal: u16) -> Result<Device> {
    Device::new_cuda(ordinal.into())
}

/// All devices of the machine that `first` belongs to.
///
/// # Errors
/// If a device cannot be opened.
pub(crate) fn all(first: &Device) -> Result<Vec<Device>> {
    #[cfg(feature = "cuda")]
    if let Some(own) = ordinal(first) {
        let open = |number| if number == own { Ok(first.clone()) } else { open(number) };
        return (0..crate::driver::count()?).map(open).collect();
    }
    Ok(vec![first.clone()])
}

/// Starts the pool of threads on which candle computes operations of many elements on the CPU. It
/// keeps 88 B, and 199 B for each thread.
pub(crate) fn start_pool() {
    // The least number of elements for which candle 0.11 uses it.
    const ELEMENTS: usize = 64 * 1024;
    let sum = Tensor::zeros(ELEMENTS, DType::F32, &HOST).and_then(|zeros| zeros.add(&zeros));
    // If candle refuses it, its pool starts in the body.
    drop(sum);
}

/// Waits for the work of the device.
///
/// # Errors
/// If the driver returns an error.
pub(crate) fn synchronize(device: &Device) -> Result<()> {
    device.synchronize()
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
    use candle_core::cuda_backend::WrapErr;
    if let Device::Cuda(cuda) = device {
        cuda.cuda_stream().context().bind_to_thread().w()?;
    }
    Ok(act()?)
}

/// Allocates and frees one block on a GPU, as candle does.
///
/// # Errors
/// If the driver refuses the block.
#[cfg(feature = "cuda")]
pub(crate) fn allocate_block(device: &Device) -> Result<()> {
    use candle_core::cuda_backend::WrapErr;
    let Device::Cuda(cuda) = device else { return Ok(()) };
    cuda.cuda_stream().alloc_zeros::<u8>(4096).map(drop).w()
}

/// Checks that the driver has freed the block of [`allocate_block`]. A free returns no result:
/// cudarc stores its error in the context and returns it at the next call that checks the context,
/// which must not be a call of the program.
///
/// # Errors
/// The driver's error when the block was freed.
#[cfg(feature = "cuda")]
pub(crate) fn check_free(device: &Device) -> Result<()> {
    use candle_core::cuda_backend::WrapErr;
    match device {
        Device::Cuda(cuda) => cuda.cuda_stream().context().check_err().w(),
        _ => Ok(()),
    }
}
