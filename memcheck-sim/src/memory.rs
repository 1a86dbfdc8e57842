//! The memory of one device: addresses without backing.
//!
//! Each block has a separate address range in the region of its device. Addresses are
//! deterministic: a block goes into the smallest gap that fits, and into the lowest of several such
//! gaps. Capacity limits the bytes as requested; this is the simulator's definition of capacity.
//! Memory that is reserved and not used does not reduce the capacity. On a real device a pool takes
//! whole chunks (`pools.rs`), so that a program can run out of memory earlier.

use std::collections::BTreeMap;

use crate::code::{Answer, Code};
use crate::gaps::Gaps;
use crate::handle::Handle;
use crate::spec::{MAX_CAPACITY, MAX_DEVICES};
use crate::unified;

/// Start of the first device's region. Regions must be below the addresses that Linux gives to
/// programs, so that a device pointer is never also a host pointer.
const BASE: u64 = 0x1000_0000_0000;
/// Length of a region. It must be larger than the maximum capacity, so that a device runs out of
/// memory before it runs out of addresses.
const SPAN: u64 = 2 * MAX_CAPACITY;
/// Alignment of every address, as in the driver.
pub(crate) const ALIGNMENT: u64 = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    /// The size as requested.
    pub(crate) bytes: u64,
    /// The pool of the block; `None` if it was allocated directly.
    pub(crate) pool: Option<Handle>,
    /// The context in which the block was allocated.
    pub(crate) context: Handle,
    /// False for a block of a graph whose memory was trimmed.
    pub(crate) in_use: bool,
}

/// Returns the device whose region contains the address. A block need not exist there.
pub(crate) fn region(address: u64) -> Option<usize> {
    let offset = address.checked_sub(BASE)?;
    usize::try_from(offset / SPAN).ok().filter(|&ordinal| ordinal < MAX_DEVICES)
}

/// The blocks and the gaps of a region.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    capacity: u64,
    /// Bytes that processes of other users hold.
    others: u64,
    used: u64,
    /// True if the heap of the process takes its memory from this one.
    has_heap: bool,
    /// Pinned and managed bytes, if the host takes its memory from this one.
    host: u64,
    blocks: BTreeMap<u64, Block>,
    gaps: Gaps,
}

impl DeviceMemory {
    pub(crate) fn new(ordinal: usize, capacity: u64) -> Self {
        let start = BASE + ordinal as u64 * SPAN;
        Self {
            capacity,
            others: 0,
            used: 0,
            has_heap: false,
            host: 0,
            blocks: BTreeMap::new(),
            gaps: Gaps::new(start, SPAN),
        }
    }

    /// Reserves this number of bytes for processes of other users.
    pub(crate) fn shared_with(self, others: u64) -> Self {
        // At most the capacity, so that the free bytes are not negative.
        Self { others: others.min(self.capacity), ..self }
    }

    /// The host takes its memory from this one if `is_shared`.
    pub(crate) fn with_heap(self, is_shared: bool) -> Self {
        Self { has_heap: is_shared, ..self }
    }

    /// Takes bytes for pinned or managed memory.
    pub(crate) fn take_for_host(&mut self, bytes: u64) {
        self.host += bytes;
    }

    pub(crate) fn give_back_from_host(&mut self, bytes: u64) {
        self.host -= bytes;
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Returns the bytes that processes of other users hold.
    pub(crate) fn others(&self) -> u64 {
        self.others
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        let heap = if self.has_heap { unified::heap() } else { 0 };
        let free = self.capacity - self.others - self.used;
        // The heap is not refused when it takes the last bytes.
        free.saturating_sub(self.host).saturating_sub(heap)
    }

    pub(crate) fn allocate(&mut self, block: Block) -> Answer<u64> {
        // CUDA documents this for `cuMemAlloc`; a pool never gets here with an empty block.
        if block.bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if block.bytes > self.free_bytes() {
            return Err(Code::OUT_OF_MEMORY);
        }
        // Rounded for the address only: the capacity is counted as requested.
        let start = self.gaps.take(rounded(block.bytes)).ok_or(Code::OUT_OF_MEMORY)?;
        self.blocks.insert(start, block);
        self.used += block.bytes;
        Ok(start)
    }

    /// Gives the memory of a block back, or takes it again. The block keeps its address.
    pub(crate) fn set_in_use(&mut self, address: u64, in_use: bool) -> Answer {
        let free = self.free_bytes();
        let block = self.blocks.get_mut(&address).ok_or(Code::INVALID_VALUE)?;
        match (block.in_use, in_use) {
            (true, false) => self.used -= block.bytes,
            (false, true) if block.bytes > free => return Err(Code::OUT_OF_MEMORY),
            (false, true) => self.used += block.bytes,
            _ => {}
        }
        block.in_use = in_use;
        Ok(())
    }

    /// Frees the block that starts at `address`.
    pub(crate) fn release(&mut self, address: u64) -> Answer<Block> {
        let block = self.blocks.remove(&address).ok_or(Code::INVALID_VALUE)?;
        if block.in_use {
            self.used -= block.bytes;
        }
        self.gaps.give_back(address, rounded(block.bytes));
        Ok(block)
    }

    /// Returns the live block that contains `address`, and its start.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, Block)> {
        let (&start, &block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.bytes).then_some((start, block))
    }

    /// Returns the live blocks in the order of their addresses.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (u64, Block)> {
        self.blocks.iter().map(|(&start, &block)| (start, block))
    }

    /// Returns the addresses of the blocks for which `condition` is true.
    pub(crate) fn select(&self, condition: impl Fn(&Block) -> bool) -> Vec<u64> {
        self.blocks.iter().filter(|(_, block)| condition(block)).map(|(&start, _)| start).collect()
    }
}

pub(crate) fn rounded(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: u64) -> Block {
        Block { bytes, pool: None, context: 0, in_use: true }
    }

    #[test]
    fn addresses_are_aligned_deterministic_and_reused() {
        let mut memory = DeviceMemory::new(0, 1 << 30);
        let a = memory.allocate(block(1)).unwrap();
        let b = memory.allocate(block(513)).unwrap();
        let c = memory.allocate(block(512)).unwrap();
        assert_eq!([a, b, c], [BASE, BASE + 512, BASE + 1536]);
        assert_eq!(memory.used(), 1026);
        memory.release(b).unwrap();
        // The block goes into the smallest gap that fits, not into the first.
        assert_eq!(memory.allocate(block(600)).unwrap(), b);
        memory.release(a).unwrap();
        memory.release(b).unwrap();
        memory.release(c).unwrap();
        assert_eq!(memory.gaps.take(SPAN), Some(BASE));
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn capacity_is_exact() {
        let mut memory = DeviceMemory::new(0, 1000);
        let a = memory.allocate(block(999)).unwrap();
        assert_eq!(memory.allocate(block(2)), Err(Code::OUT_OF_MEMORY));
        memory.allocate(block(1)).unwrap();
        assert_eq!(memory.free_bytes(), 0);
        memory.release(a).unwrap();
        assert_eq!(memory.free_bytes(), 999);
    }

    #[test]
    fn memory_of_other_processes_is_not_available() {
        let mut memory = DeviceMemory::new(0, 1000).shared_with(400);
        assert_eq!(memory.allocate(block(601)), Err(Code::OUT_OF_MEMORY));
        memory.allocate(block(600)).unwrap();
        assert_eq!((memory.used(), memory.free_bytes(), memory.capacity()), (600, 0, 1000));
        assert_eq!(DeviceMemory::new(0, 1000).shared_with(2000).free_bytes(), 0);
    }

    #[test]
    fn a_block_that_is_not_in_use_keeps_its_address() {
        let mut memory = DeviceMemory::new(0, 1000);
        let a = memory.allocate(block(600)).unwrap();
        memory.set_in_use(a, false).unwrap();
        memory.set_in_use(a, false).unwrap();
        assert_eq!(memory.used(), 0);
        let b = memory.allocate(block(600)).unwrap();
        assert_ne!(a, b);
        assert_eq!(memory.set_in_use(a, true), Err(Code::OUT_OF_MEMORY));
        memory.release(b).unwrap();
        memory.set_in_use(a, true).unwrap();
        assert_eq!(memory.used(), 600);
        memory.set_in_use(a, false).unwrap();
        memory.release(a).unwrap();
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn empty_and_unknown_blocks_are_errors() {
        let mut memory = DeviceMemory::new(0, 1000);
        assert_eq!(memory.allocate(block(0)), Err(Code::INVALID_VALUE));
        let a = memory.allocate(block(10)).unwrap();
        assert_eq!(memory.release(a + 1), Err(Code::INVALID_VALUE));
        memory.release(a).unwrap();
        assert_eq!(memory.release(a), Err(Code::INVALID_VALUE));
    }

    #[test]
    fn a_pointer_into_a_block_is_valid_up_to_its_end() {
        let mut memory = DeviceMemory::new(3, 1000);
        let a = memory.allocate(block(100)).unwrap();
        assert_eq!(memory.find(a + 99), Some((a, block(100))));
        assert_eq!(memory.find(a + 100), None);
        assert_eq!(memory.find(a - 1), None);
        assert_eq!(region(a), Some(3));
        assert_eq!(region(0x7f00_0000_0000), None);
    }
}
