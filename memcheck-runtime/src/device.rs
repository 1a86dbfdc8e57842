//! The devices of a machine and the spaces of their tensors.

use candle_core::Device;
use memcheck_core::space::Space;

/// All devices of the machine that `first` belongs to.
pub(crate) fn all(first: &Device) -> candle_core::Result<Vec<Device>> {
    match first {
        #[cfg(feature = "cuda")]
        Device::Cuda(_) => {
            use candle_core::cuda_backend::WrapErr;
            use candle_core::cuda_backend::cudarc::driver::CudaContext;
            let count = CudaContext::device_count().w()?;
            let first_ordinal = ordinal(first);
            (0..usize::try_from(count).unwrap_or(0))
                .map(|ordinal| match ordinal == first_ordinal {
                    true => Ok(first.clone()),
                    false => Device::new_cuda(ordinal),
                })
                .collect()
        }
        other => Ok(vec![other.clone()]),
    }
}

#[cfg(feature = "cuda")]
fn ordinal(device: &Device) -> usize {
    match device.location() {
        candle_core::DeviceLocation::Cuda { gpu_id } => gpu_id,
        _ => 0,
    }
}

pub(crate) fn space(device: &Device) -> Space {
    match device.location() {
        candle_core::DeviceLocation::Cuda { gpu_id } => {
            Space::Cuda(u16::try_from(gpu_id).unwrap_or(u16::MAX))
        }
        _ => Space::Host,
    }
}
