//! Memory that the CPU touches too: pinned, managed and registered blocks.
//!
//! It is real, zeroed, and comes from the system's allocator directly, so that
//! a global allocator which counts does not count it a second time. It takes
//! nothing from a device's capacity: managed memory may be larger than that.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;

use crate::code::{Answer, Code};

const PAGE: usize = 4096;

/// How a host block came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `cuMemAllocHost`, `cuMemHostAlloc`.
    Pinned,
    /// `cuMemAllocManaged`, on the device with this ordinal.
    Managed(usize),
    /// `cuMemHostRegister`: the program's own memory.
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
        // SAFETY: the layout is not of size zero.
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
            return Err(Code(712));
        }
        self.blocks.insert(address, HostBlock { bytes, origin: Origin::Registered, flags });
        Ok(())
    }

    /// Ends the block that starts at `address`, if its origin is an `accepted` one.
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
            // SAFETY: `allocate` got this address for this layout, and it has
            // just left the map, so nobody frees it a second time.
            unsafe { System.dealloc(address as *mut u8, layout) };
        }
        Ok(block)
    }

    /// The live block that `address` points into, and where it starts.
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
