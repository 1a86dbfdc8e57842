//! The proof that a probe is armed: a block that it must see come and go.

use candle_core::Device;
use memcheck_core::quiet;
use memcheck_core::space::Space;

#[cfg(feature = "cuda")]
use crate::device;
use crate::ledger;

/// Allocates and frees one block on the host: whether the probe saw both.
pub(crate) fn on_host() -> bool {
    saw(Space::Host, || {
        quiet::lifted(|| std::hint::black_box(vec![0u8; 4096]));
    })
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

fn saw(space: Space, canary: impl FnOnce()) -> bool {
    let before = ledger::snapshot(space);
    canary();
    let after = ledger::snapshot(space);
    after.allocations == before.allocations + 1
        && after.frees == before.frees + 1
        && after.live == before.live
}
