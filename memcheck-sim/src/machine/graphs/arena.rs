//! The memory of one graph: blocks of a device, each of which one request at a time uses.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Arena {
    /// From the start of each block to its bytes.
    blocks: BTreeMap<u64, u64>,
    /// The blocks that the program or the capture uses, with the bytes that were requested.
    live: BTreeMap<u64, u64>,
    /// The blocks that no node of the graph frees, so that each launch allocates them.
    kept: BTreeMap<u64, u64>,
    /// Blocks that were trimmed.
    trimmed: BTreeSet<u64>,
}

impl Arena {
    /// Returns the bytes of the blocks that are not trimmed.
    pub(super) fn held(&self) -> u64 {
        let in_use = self.blocks.iter().filter(|(block, _)| !self.trimmed.contains(block));
        in_use.map(|(_, bytes)| bytes).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn has_live(&self) -> bool {
        !self.live.is_empty()
    }

    /// Returns the blocks that no request uses.
    fn unused(&self) -> impl Iterator<Item = (u64, u64)> {
        let blocks = self.blocks.iter().map(|(&block, &size)| (block, size));
        blocks.filter(|(block, _)| !self.live.contains_key(block))
    }

    /// Adds a block of the device for a request that no unused block fits.
    pub(super) fn add(&mut self, address: u64, bytes: u64) {
        self.blocks.insert(address, bytes);
        self.live.insert(address, bytes);
    }

    /// Takes the smallest unused block that fits, the lowest of several.
    pub(super) fn reuse(&mut self, bytes: u64) -> Option<u64> {
        let fitting = self.unused().filter(|&(_, size)| size >= bytes);
        let (block, _) = fitting.min_by_key(|&(block, size)| (size, block))?;
        self.live.insert(block, bytes);
        Some(block)
    }

    /// Frees the block that starts at `address`, and returns the bytes that were requested.
    pub(super) fn free(&mut self, address: u64) -> Option<u64> {
        self.live.remove(&address)
    }

    /// Ends the capture: the blocks that are in use now are those that no node frees.
    pub(super) fn finish(&mut self) {
        self.kept = self.live.clone();
    }

    /// Frees everything, because the capture failed.
    pub(super) fn abandon(&mut self) {
        self.live.clear();
    }

    /// Allocates the kept blocks again, as a launch does.
    pub(super) fn revive(&mut self) {
        self.live = self.kept.clone();
    }

    /// Returns the unused blocks that are not trimmed. They are from now on.
    pub(super) fn decommit(&mut self) -> Vec<u64> {
        let unused = self.unused().map(|(block, _)| block);
        let unused: Vec<u64> = unused.filter(|block| !self.trimmed.contains(block)).collect();
        self.trimmed.extend(&unused);
        unused
    }

    /// Returns a block that was trimmed.
    pub(super) fn uncommitted(&self) -> Option<u64> {
        self.trimmed.first().copied()
    }

    pub(super) fn commit(&mut self, block: u64) {
        self.trimmed.remove(&block);
    }

    /// Removes and returns the unused blocks.
    pub(super) fn take_unused(&mut self) -> Vec<u64> {
        let unused: Vec<u64> = self.unused().map(|(block, _)| block).collect();
        for block in &unused {
            self.blocks.remove(block);
            self.trimmed.remove(block);
        }
        unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_block_is_used_for_the_next_request_that_fits() {
        let mut arena = Arena::default();
        arena.add(0x10_000, 2000);
        arena.add(0x20_000, 1000);
        assert_eq!(arena.reuse(1), None);
        assert_eq!((arena.free(0x10_000), arena.free(0x20_000)), (Some(2000), Some(1000)));
        assert_eq!(arena.free(0x10_000), None);
        assert_eq!(arena.reuse(2001), None);
        assert_eq!(arena.reuse(600), Some(0x20_000));
        assert_eq!(arena.reuse(600), Some(0x10_000));
        assert_eq!(arena.reuse(600), None);
        assert_eq!((arena.free(0x10_000), arena.held()), (Some(600), 3000));
    }

    #[test]
    fn a_trim_takes_the_blocks_that_nothing_uses() {
        let mut arena = Arena::default();
        arena.add(0x10_000, 512);
        arena.add(0x20_000, 100);
        arena.free(0x10_000);
        arena.finish();
        assert_eq!(arena.decommit(), [0x10_000]);
        assert_eq!((arena.held(), arena.decommit()), (100, vec![]));
        assert_eq!(arena.uncommitted(), Some(0x10_000));
        arena.commit(0x10_000);
        assert_eq!(arena.held(), 612);
        arena.free(0x20_000);
        assert!(!arena.has_live());
        arena.revive();
        assert_eq!(arena.take_unused(), [0x10_000]);
        assert!(!arena.is_empty());
    }
}
