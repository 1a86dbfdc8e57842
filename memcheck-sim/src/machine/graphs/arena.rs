//! The memory of one graph on a device: blocks, each of which one request at a time uses.

use std::collections::{BTreeMap, BTreeSet};

use crate::handle::Handle;

#[derive(Debug, Default)]
pub(super) struct Arena {
    /// From the start of each block to its bytes.
    blocks: BTreeMap<u64, u64>,
    /// The blocks that the program uses, with the bytes that were requested.
    live: BTreeMap<u64, u64>,
    /// The blocks that no node of the graph frees, so that each launch allocates them.
    kept: BTreeMap<u64, u64>,
    /// The blocks that a node frees and that no later node allocates, with that node.
    freed: BTreeMap<u64, Handle>,
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

    pub(super) fn contains(&self, address: u64) -> bool {
        self.blocks.contains_key(&address)
    }

    pub(super) fn has_live(&self) -> bool {
        !self.live.is_empty()
    }

    /// Returns the bytes of the block that starts at `address` if no node frees it.
    pub(super) fn unfreed(&self, address: u64) -> Option<u64> {
        self.kept.get(&address).copied()
    }

    /// Adds a block of the device for a node that no free block fits.
    pub(super) fn add(&mut self, address: u64, bytes: u64) {
        self.blocks.insert(address, bytes);
        self.kept.insert(address, bytes);
    }

    /// Takes the smallest block that fits, the lowest of several, from those that a node frees. The
    /// new node must run after that node.
    pub(super) fn reuse(&mut self, bytes: u64, is_before: impl Fn(Handle) -> bool) -> Option<u64> {
        let freed = self.freed.iter().map(|(&block, &node)| (self.blocks[&block], block, node));
        let fitting = freed.filter(|&(size, _, node)| size >= bytes && is_before(node));
        let (_, block, _) = fitting.min()?;
        self.freed.remove(&block);
        self.kept.insert(block, bytes);
        Some(block)
    }

    /// Gives the block that starts at `address` to the program, during a capture.
    pub(super) fn hold(&mut self, address: u64) {
        if let Some(&bytes) = self.kept.get(&address) {
            self.live.insert(address, bytes);
        }
    }

    /// Notes that `node` frees the block that starts at `address`.
    pub(super) fn free_by(&mut self, node: Handle, address: u64) {
        if self.kept.remove(&address).is_some() {
            self.live.remove(&address);
            self.freed.insert(address, node);
        }
    }

    /// Frees the block that starts at `address`, and returns the bytes that were requested.
    pub(super) fn free(&mut self, address: u64) -> Option<u64> {
        self.live.remove(&address)
    }

    /// Frees everything, because the capture failed.
    pub(super) fn abandon(&mut self) {
        self.live.clear();
    }

    /// Allocates the kept blocks, as a launch does.
    pub(super) fn revive(&mut self) {
        // A block that a node of the graph frees is free again at the end of the launch.
        self.live = self.kept.clone();
    }

    /// Returns the blocks that the program does not use and that are not trimmed. They are from now
    /// on.
    pub(super) fn decommit(&mut self) -> Vec<u64> {
        let unused = self.unused().filter(|block| !self.trimmed.contains(block));
        let unused: Vec<u64> = unused.collect();
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

    /// Removes and returns the blocks that the program does not use.
    pub(super) fn take_unused(&mut self) -> Vec<u64> {
        let unused: Vec<u64> = self.unused().collect();
        for block in &unused {
            self.blocks.remove(block);
            self.kept.remove(block);
            self.freed.remove(block);
            self.trimmed.remove(block);
        }
        unused
    }

    fn unused(&self) -> impl Iterator<Item = u64> {
        self.blocks.keys().copied().filter(|block| !self.live.contains_key(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u64 = 0x10_000;
    const SECOND: u64 = 0x20_000;

    #[test]
    fn a_block_that_a_node_frees_is_used_for_the_next_request_that_fits() {
        let mut arena = Arena::default();
        arena.add(FIRST, 2000);
        arena.add(SECOND, 1000);
        assert_eq!(arena.reuse(1, |_| true), None);
        arena.free_by(7, FIRST);
        arena.free_by(8, SECOND);
        assert_eq!((arena.unfreed(FIRST), arena.unfreed(SECOND)), (None, None));
        assert_eq!(arena.reuse(2001, |_| true), None);
        // Node 8 has not run before the new node.
        assert_eq!(arena.reuse(600, |node| node == 7), Some(FIRST));
        assert_eq!(arena.reuse(600, |_| true), Some(SECOND));
        assert_eq!(arena.reuse(600, |_| true), None);
        assert_eq!((arena.unfreed(FIRST), arena.held()), (Some(600), 3000));
    }

    #[test]
    fn the_program_uses_kept_blocks_from_the_launch_until_it_frees_them() {
        let mut arena = Arena::default();
        arena.add(FIRST, 100);
        assert!(!arena.has_live());
        arena.revive();
        assert_eq!((arena.free(FIRST), arena.free(FIRST)), (Some(100), None));
        // A capture gives a block to the program at once.
        arena.hold(FIRST);
        assert!(arena.has_live());
        arena.free_by(7, FIRST);
        assert!(!arena.has_live());
    }

    #[test]
    fn a_trim_takes_the_blocks_that_nothing_uses() {
        let mut arena = Arena::default();
        arena.add(FIRST, 512);
        arena.add(SECOND, 100);
        arena.free_by(7, FIRST);
        arena.revive();
        assert_eq!(arena.decommit(), [FIRST]);
        assert_eq!((arena.held(), arena.decommit()), (100, vec![]));
        assert_eq!(arena.uncommitted(), Some(FIRST));
        arena.commit(FIRST);
        assert_eq!(arena.held(), 612);
        assert_eq!(arena.take_unused(), [FIRST]);
        assert!(!arena.is_empty());
        arena.free(SECOND);
        assert_eq!(arena.take_unused(), [SECOND]);
        assert!(arena.is_empty());
    }
}
