//! Canaries: blocks that prove that a probe is armed, because it must see them come and go.

use memcheck_core::quiet;
use memcheck_core::space::Space;
use memcheck_ledger::{self as ledger, c_heap};

use crate::device::{self, Device};
#[cfg(feature = "cuda")]
use crate::driver::blocks;

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
pub(crate) fn in_space(space: Space) -> device::Result<bool> {
    match space {
        Space::Host => Ok(on_host()),
        Space::HostSmall => Ok(on_host_small()),
        Space::CHeap => Ok(on_c_heap()),
        // They have no blocks.
        Space::Process | Space::Counter(_) => Ok(false),
        #[cfg(feature = "cuda")]
        Space::Cuda(ordinal) => on_device(&device::open(ordinal)?),
        #[cfg(feature = "cuda")]
        Space::Pinned(ordinal) => seen_on(ordinal, space, blocks::pinned_block),
        #[cfg(feature = "cuda")]
        Space::Managed(ordinal) => seen_on(ordinal, space, blocks::managed_block),
        #[cfg(feature = "cuda")]
        Space::Graph(ordinal) => seen_on(ordinal, space, blocks::graph_block),
        #[cfg(not(feature = "cuda"))]
        _ => Ok(false),
    }
}

/// Allocates and frees one block of `space` with `block`. True if the probe saw both.
#[cfg(feature = "cuda")]
fn seen_on(
    ordinal: u16,
    space: Space,
    block: impl FnOnce() -> Result<(), crate::driver::DriverError>,
) -> device::Result<bool> {
    let device = device::open(ordinal)?;
    let mut allocated = Ok(());
    let seen = is_seen(space, || allocated = device::with_current(&device, block));
    allocated.map(|()| seen)
}

/// Allocates and frees one block on the device. True if the probe saw both.
///
/// # Errors
/// If the device refuses the block.
pub(crate) fn on_device(device: &Device) -> device::Result<bool> {
    #[cfg(feature = "cuda")]
    if device::ordinal(device).is_some() {
        let mut allocated = Ok(());
        let seen = is_seen(device::space(device), || allocated = device::allocate_block(device));
        return allocated.map(|()| seen);
    }
    let _ = device;
    Ok(on_host())
}

fn is_seen(space: Space, canary: impl FnOnce()) -> bool {
    let before = ledger::snapshot(space);
    canary();
    let after = ledger::snapshot(space);
    after.allocations == before.allocations + 1
        && after.frees == before.frees + 1
        && after.live == before.live
}
