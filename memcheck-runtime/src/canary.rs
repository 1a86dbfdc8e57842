//! The proof that a probe is armed: a block that it must see come and go.

use candle_core::Device;
use memcheck_core::quiet;
use memcheck_core::space::Space;

use crate::ledger;
#[cfg(feature = "cuda")]
use crate::{device, probe};

/// Allocates and frees one block on the host: whether the probe saw both.
pub(crate) fn on_host() -> bool {
    saw(Space::Host, || {
        quiet::lifted(|| std::hint::black_box(vec![0u8; 4096]));
    })
}

/// The same with a small block.
pub(crate) fn on_host_small() -> bool {
    saw(Space::HostSmall, || {
        quiet::lifted(|| std::hint::black_box(vec![0u8; 64]));
    })
}

/// Allocates and frees one block in a space that the body was the first to use: whether the
/// probe saw both.
///
/// # Errors
/// If the device cannot be opened, or has no block to give.
pub(crate) fn of(space: Space) -> candle_core::Result<bool> {
    match space {
        Space::Host => Ok(on_host()),
        Space::HostSmall => Ok(on_host_small()),
        #[cfg(feature = "cuda")]
        Space::Cuda(ordinal) => on(&Device::new_cuda(ordinal.into())?),
        #[cfg(feature = "cuda")]
        Space::Pinned(ordinal) | Space::Managed(ordinal) => {
            let device = Device::new_cuda(ordinal.into())?;
            let mut allocated = Ok(());
            let seen = saw(space, || {
                allocated = match space {
                    Space::Pinned(_) => probe::cuda::pinned_block(&device),
                    _ => probe::cuda::managed_block(&device),
                };
            });
            allocated.map(|()| seen)
        }
        #[cfg(not(feature = "cuda"))]
        _ => Ok(false),
    }
}

/// Allocates and frees one block on the device: whether the probe saw both.
///
/// # Errors
/// When the device has no block to give.
pub(crate) fn on(device: &Device) -> candle_core::Result<bool> {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(cuda) => {
            use candle_core::cuda_backend::WrapErr;
            let mut allocated = Ok(());
            let seen = saw(device::space(device), || {
                allocated = cuda.cuda_stream().alloc_zeros::<u8>(4096).map(drop);
            });
            allocated.w()?;
            Ok(seen)
        }
        _ => Ok(on_host()),
    }
}

/// Whether the driver took the block of the canary back. A free has no result:
/// cudarc keeps its error for whoever asks the context next, which is not to be
/// the program.
///
/// # Errors
/// What the driver said when the block was freed.
#[cfg(feature = "cuda")]
pub(crate) fn taken_back(device: &Device) -> candle_core::Result<()> {
    use candle_core::cuda_backend::WrapErr;
    match device {
        Device::Cuda(cuda) => cuda.cuda_stream().context().check_err().w(),
        _ => Ok(()),
    }
}

fn saw(space: Space, canary: impl FnOnce()) -> bool {
    let before = ledger::snapshot(space);
    canary();
    let after = ledger::snapshot(space);
    after.allocations == before.allocations + 1
        && after.frees == before.frees + 1
        && after.live == before.live
}
