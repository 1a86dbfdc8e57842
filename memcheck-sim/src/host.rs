//! Memory that the CPU also accesses: pinned, managed and registered blocks.
//!
//! This memory is real and zeroed. It comes directly from the system's allocator, so that a global
//! allocator that counts does not count it a second time. It reduces a device's capacity only if
//! host and device share one memory ([`crate::machine`]), because managed memory can be larger than
//! another device.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;

use crate::code::{Answer, Code};

// The system locks whole pages.
const PAGE: usize = 4096;

/// The call that created a host block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `cuMemAllocHost`, `cuMemHostAlloc`.
    Pinned,
    /// `cuMemAllocManaged`, on the device with this ordinal.
    Managed(usize),
    /// `cuMemHostRegister`, on memory that the program has allocated.
    Registered,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct HostBlock {
    pub(crate) bytes: u64,
    pub(crate) origin: Origin,
    pub(crate) flags: u32,
}

/// The live host blocks by address.
#[derive(Debug, Default)]
pub(crate) struct HostMemory {
    blocks: BTreeMap<u64, HostBlock>,
}

impl HostMemory {
    pub(crate) fn allocate(&mut self, bytes: u64, origin: Origin, flags: u32) -> Answer<u64> {
        let layout = layout(bytes).filter(|_| bytes > 0).ok_or(Code::INVALID_VALUE)?;
        // SAFETY: the size of the layout is not zero.
        let address = unsafe { System.alloc_zeroed(layout) } as u64;
        if address == 0 {
            return Err(Code::OUT_OF_MEMORY);
        }
        self.blocks.insert(address, HostBlock { bytes, origin, flags });
        Ok(address)
    }

    pub(crate) fn register(&mut self, address: u64, bytes: u64, flags: u32) -> Answer {
        if address == 0 || bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if self.find(address).is_some() {
            // CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
            return Err(Code(712));
        }
        self.blocks.insert(address, HostBlock { bytes, origin: Origin::Registered, flags });
        Ok(())
    }

    /// Removes the block that starts at `address` if `accepted` is true for its origin. Frees it
    /// unless it is registered.
    pub(crate) fn release(
        &mut self,
        address: u64,
        accepted: impl Fn(Origin) -> bool,
    ) -> Answer<HostBlock> {
        let block = *self
            .blocks
            .get(&address)
            .filter(|block| accepted(block.origin))
            .ok_or(Code::INVALID_VALUE)?;
        self.blocks.remove(&address);
        if block.origin != Origin::Registered
            && let Some(layout) = layout(block.bytes)
        {
            // SAFETY: `allocate` got this address for this layout. The block has just left the map,
            // so it cannot be freed a second time.
            unsafe { System.dealloc(address as *mut u8, layout) };
        }
        Ok(block)
    }

    /// Returns the live block that contains `address`, and its start.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, HostBlock)> {
        let (&start, &block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.bytes).then_some((start, block))
    }

    pub(crate) fn holds(&self, address: u64, length: u64) -> bool {
        self.find(address).is_some_and(|(start, block)| length <= block.bytes - (address - start))
    }
}

fn layout(bytes: u64) -> Option<Layout> {
    Layout::from_size_align(usize::try_from(bytes).ok()?, PAGE).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_real_and_zeroed() {
        let mut host = HostMemory::default();
        let address = host.allocate(100, Origin::Pinned, 0).unwrap();
        // SAFETY: the block is live and has 100 bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, 100) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        bytes[99] = 1;
        assert!(host.holds(address + 99, 1));
        assert!(!host.holds(address + 99, 2));
        assert_eq!(
            host.release(address, |origin| origin == Origin::Registered).unwrap_err(),
            Code::INVALID_VALUE
        );
        host.release(address, |origin| origin == Origin::Pinned).unwrap();
        assert!(host.release(address, |_| true).is_err());
    }

    #[test]
    fn registered_memory_stays_the_programs() {
        let mut host = HostMemory::default();
        let own = [0_u8; 16];
        let address = own.as_ptr() as u64;
        host.register(address, 16, 0).unwrap();
        assert_eq!(host.register(address, 16, 0), Err(Code(712)));
        host.release(address, |origin| origin == Origin::Registered).unwrap();
        assert!(host.find(address).is_none());
    }
}
