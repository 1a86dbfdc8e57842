//! The element types of blocks that a kernel has left unknown, for the description of a read.

/// The number of blocks whose type can be known at the same time.
const PLACES: usize = 512;

/// The type of each block, by a hash of its address. PERF: a launch of a large model notes a type,
/// so that this is a table of constant size in which a later block replaces an earlier one.
#[derive(Debug)]
pub(super) struct Types(Box<[(u64, &'static str); PLACES]>);

impl Types {
    pub(super) fn new() -> Self {
        Self(Box::new([(0, ""); PLACES]))
    }

    fn place(block: u64) -> usize {
        // Blocks are aligned to 512 bytes and often of similar sizes, so that all bits count.
        (block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize % PLACES
    }

    pub(super) fn note(&mut self, block: u64, name: &'static str) {
        self.0[Self::place(block)] = (block, name);
    }

    pub(super) fn forget(&mut self, block: u64) {
        let known = &mut self.0[Self::place(block)];
        if known.0 == block {
            *known = (0, "");
        }
    }

    pub(super) fn get(&self, block: u64) -> Option<&'static str> {
        let (known, name) = self.0[Self::place(block)];
        // An empty place has the block 0.
        (known == block && block != 0).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_known_until_its_block_is_written_or_replaced() {
        let mut types = Types::new();
        let blocks = || (1..=PLACES as u64).map(|number| number << 9);
        blocks().for_each(|block| types.note(block, "f32"));
        let known = blocks().filter(|&block| types.get(block).is_some()).count();
        assert!(known > PLACES / 4, "{known}");
        types.note(1 << 9, "u32");
        assert_eq!(types.get(1 << 9), Some("u32"));
        types.forget(1 << 9);
        assert_eq!(types.get(1 << 9), None);
        assert_eq!(types.get(0), None);
    }
}
