//! A block of memory, and the two words that represent it in the ledger's table.

use memcheck_limits::space::COUNTED_GPUS;
use memcheck_limits::space::Space;

/// Spaces of one GPU: its own memory, pinned memory, managed memory, and the memory of graphs.
const SPACES_PER_DEVICE: usize = 4;
/// The two spaces of the host and the C heap. Those of each GPU follow.
const SPACES_OF_HOST: usize = 3;
/// The number of spaces that the ledger distinguishes.
pub(crate) const SPACES: usize = SPACES_OF_HOST + SPACES_PER_DEVICE * COUNTED_GPUS;

/// The number of phases that the ledger distinguishes. 0 is the body outside of phases.
pub const MOST_PHASES: u8 = 127;

/// A block of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// In bytes.
    pub size: u64,
    /// The memory that it is in.
    pub space: Space,
    /// Where and when it was allocated.
    pub origin: Origin,
}

impl Block {
    const SIZE_BITS: u32 = 47;
    /// The bit above the size is set if the driver has refused to free the block.
    const UNFREED: u64 = 1 << Self::SIZE_BITS;
    /// The bits above that one hold the index of the space.
    const SPACE_SHIFT: u32 = Self::SIZE_BITS + 1;
    const SPACE_BITS: u32 = 8;
    /// The bits above these hold the number of the phase of the body. The table uses the last bit.
    const PHASE_SHIFT: u32 = Self::SPACE_SHIFT + Self::SPACE_BITS;

    /// The two words of the ledger's table.
    pub(crate) fn words(self) -> [u64; 2] {
        let space = index(self.space).unwrap_or(0) as u64;
        [space << Self::SPACE_SHIFT | self.size, self.origin.pack()]
    }

    /// The two words of a block that the driver has refused to free.
    pub(crate) fn unfreed_words(self) -> [u64; 2] {
        let [first, second] = self.words();
        [first | Self::UNFREED, second]
    }

    /// True if the driver has refused to free the block that these words represent.
    pub(crate) fn is_unfreed([size, _]: [u64; 2]) -> bool {
        size & Self::UNFREED != 0
    }

    /// The bits of a first word for a block that was allocated in this phase.
    pub(crate) fn phase_bits(phase: u8) -> u64 {
        u64::from(phase.min(MOST_PHASES)) << Self::PHASE_SHIFT
    }

    /// The phase of the block that these words represent.
    pub(crate) fn phase_of([size, _]: [u64; 2]) -> u8 {
        (size >> Self::PHASE_SHIFT) as u8 & MOST_PHASES
    }

    /// The size of the block that these words represent.
    #[inline]
    pub(crate) fn size_of([size, _]: [u64; 2]) -> u64 {
        size & ((1 << Self::SIZE_BITS) - 1)
    }

    /// The index of the space of the block that these words represent.
    // PERF: reads the index from the word, because a match on `Space` compiles to a jump table.
    #[inline]
    pub(crate) fn index_of([size, _]: [u64; 2]) -> usize {
        let space = size >> Self::SPACE_SHIFT & ((1 << Self::SPACE_BITS) - 1);
        (space as usize).min(SPACES - 1)
    }

    /// The block that these words represent.
    pub(crate) fn from_words(words: [u64; 2]) -> Self {
        Self {
            size: Self::size_of(words),
            space: space(Self::index_of(words)),
            origin: Origin::unpack(words[1]),
        }
    }
}

/// The iteration, call site, scope and shape of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Origin {
    /// The iteration in which the block was born; 0 is the set-up.
    pub birth: u32,
    /// Call stack and scope, as a number of [`crate::site`]; 0 in a run without attribution.
    pub context: u32,
    /// Shape and element type of the tensor that the block was made for, as a number of
    /// memcheck-runtime; 0 if it is not known.
    pub shape: u16,
}

impl Origin {
    /// The number of bits of a birth and of a context. Greater values are clamped to `MAX`.
    const BITS: u32 = 24;
    /// The greatest birth and context that are stored.
    pub const MAX: u32 = (1 << Self::BITS) - 1;

    /// The origin as one word.
    pub(crate) fn pack(self) -> u64 {
        let (birth, context) = (self.birth.min(Self::MAX), self.context.min(Self::MAX));
        u64::from(birth) | u64::from(context) << Self::BITS | u64::from(self.shape) << 48
    }

    /// The origin that this word represents.
    pub(crate) fn unpack(word: u64) -> Self {
        Self {
            birth: word as u32 & Self::MAX,
            context: (word >> Self::BITS) as u32 & Self::MAX,
            shape: (word >> 48) as u16,
        }
    }
}

/// The index of a space in tables; `None` for a GPU that the ledger does not distinguish, and for
/// the process and counters, which have no blocks.
pub fn index(space: Space) -> Option<usize> {
    let of_gpu = |ordinal: u16, kind: usize| {
        let ordinal = usize::from(ordinal);
        (ordinal < COUNTED_GPUS).then_some(SPACES_OF_HOST + SPACES_PER_DEVICE * ordinal + kind)
    };
    match space {
        Space::Host => Some(0),
        Space::HostSmall => Some(1),
        Space::CHeap => Some(2),
        Space::Process | Space::Counter(_) => None,
        Space::Cuda(ordinal) => of_gpu(ordinal, 0),
        Space::Pinned(ordinal) => of_gpu(ordinal, 1),
        Space::Managed(ordinal) => of_gpu(ordinal, 2),
        Space::Graph(ordinal) => of_gpu(ordinal, 3),
    }
}

/// The space with this index; see [`index`].
pub fn space(index: usize) -> Space {
    let Some(of_device) = index.checked_sub(SPACES_OF_HOST) else {
        return match index {
            0 => Space::Host,
            1 => Space::HostSmall,
            _ => Space::CHeap,
        };
    };
    let ordinal = u16::try_from(of_device / SPACES_PER_DEVICE).unwrap_or(u16::MAX);
    match of_device % SPACES_PER_DEVICE {
        0 => Space::Cuda(ordinal),
        1 => Space::Pinned(ordinal),
        2 => Space::Managed(ordinal),
        _ => Space::Graph(ordinal),
    }
}

/// All spaces of the ledger, in the order of reports.
pub fn spaces() -> impl Iterator<Item = Space> {
    (0..SPACES).map(space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_and_refused_free_of_a_block_change_neither_its_size_nor_its_space() {
        let block =
            Block { size: (1 << 47) - 1, space: space(SPACES - 1), origin: Origin::default() };
        for (words, is_unfreed) in [(block.words(), false), (block.unfreed_words(), true)] {
            for phase in [0, 1, MOST_PHASES] {
                let words = [words[0] | Block::phase_bits(phase), words[1]];
                assert_eq!((Block::from_words(words), Block::phase_of(words)), (block, phase));
                assert_eq!(Block::is_unfreed(words), is_unfreed);
                assert_eq!(words[0] >> 63, 0, "the last bit is the table's");
            }
        }
    }
}
