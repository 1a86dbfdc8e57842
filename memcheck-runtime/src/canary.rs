//! Canaries: blocks that prove that a probe is armed, because it must see them come and go.

use candle_core::Device;
use memcheck_core::measurement::quiet;
use memcheck_core::space::Space;
use memcheck_ledger::{self as ledger, c_heap};

#[cfg(feature = "cuda")]
use crate::device;

/// Allocates and frees one block on the host. True if the probe saw both.
pub(crate) fn on_host() -> bool {
    is_seen(Space::Host, || {
        quiet::lifted(|| std::hint::black_box(vec![0u8; 4096]));
    })
}

/// Allocates and frees one small block on the host. True if the probe saw both.
pub(crate) fn on_host_small() -> bool {
    is_seen(Space::HostSmall, || {
        quiet::lifted(|| std::hint::black_box(vec![0u8; 64]));
    })
}

/// Allocates and frees one block of the C heap from the executable, and one from a shared library.
/// True if the probe saw both.
pub(crate) fn on_c_heap() -> bool {
    is_seen(Space::CHeap, c_heap::block) && is_seen(Space::CHeap, c_heap::block_of_library)
}

/// Allocates and frees one block in a space that the body was the first to use. True if the probe
/// saw both.
///
/// # Errors
/// If the device cannot be opened or refuses the block.
pub(crate) fn in_space(space: Space) -> candle_core::Result<bool> {
    match space {
        Space::Host => Ok(on_host()),
        Space::HostSmall => Ok(on_host_small()),
        Space::CHeap => Ok(on_c_heap()),
        // It has no blocks: `crate::process_memory` reads its figures.
        Space::Process => Ok(false),
        #[cfg(feature = "cuda")]
        Space::Cuda(ordinal) => on_device(&Device::new_cuda(ordinal.into())?),
        #[cfg(feature = "cuda")]
        Space::Pinned(ordinal) | Space::Managed(ordinal) | Space::Graph(ordinal) => {
            let device = Device::new_cuda(ordinal.into())?;
            let mut allocated = Ok(());
            let seen = is_seen(space, || {
                allocated = match space {
                    Space::Pinned(_) => crate::probe::cuda::pinned_block(&device),
                    Space::Graph(_) => crate::probe::cuda::graph_block(&device),
                    _ => crate::probe::cuda::managed_block(&device),
                };
            });
            allocated.map(|()| seen)
        }
        #[cfg(not(feature = "cuda"))]
        _ => Ok(false),
    }
}

/// Allocates and frees one block on the device. True if the probe saw both.
///
/// # Errors
/// If the device refuses the block.
pub(crate) fn on_device(device: &Device) -> candle_core::Result<bool> {
    match device {
        #[cfg(feature = "cuda")]
        Device::Cuda(cuda) => {
            use candle_core::cuda_backend::WrapErr;
            let mut allocated = Ok(());
            let seen = is_seen(device::space(device), || {
                allocated = cuda.cuda_stream().alloc_zeros::<u8>(4096).map(drop);
            });
            allocated.w()?;
            Ok(seen)
        }
        _ => Ok(on_host()),
    }
}

/// Checks that the driver has freed the canary's block. A free returns no result: cudarc stores its
/// error in the context and returns it at the next call that checks the context, which must not be
/// a call of the program.
///
/// # Errors
/// The driver's error when the block was freed.
#[cfg(feature = "cuda")]
pub(crate) fn check_free(device: &Device) -> candle_core::Result<()> {
    use candle_core::cuda_backend::WrapErr;
    match device {
        Device::Cuda(cuda) => cuda.cuda_stream().context().check_err().w(),
        _ => Ok(()),
    }
}

fn is_seen(space: Space, canary: impl FnOnce()) -> bool {
    let before = ledger::snapshot(space);
    canary();
    let after = ledger::snapshot(space);
    after.allocations == before.allocations + 1
        && after.frees == before.frees + 1
        && after.live == before.live
}
