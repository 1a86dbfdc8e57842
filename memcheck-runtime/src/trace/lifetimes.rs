//! The births and deaths of single blocks in one space, for a picture of memory over time.
//!
//! An event names a block by its origin and size, so that equal blocks are interchangeable: the
//! first to be allocated counts as the first to be freed. The sum over equal blocks is exact.

use std::collections::VecDeque;

use memcheck_core::measurement::attribution::MOST_BLOCKS;
use memcheck_ledger::block::Block;
use rustc_hash::FxHashMap;

use super::Key;

/// The most samples of the live bytes that are stored.
const SAMPLES: usize = 1024;
/// The most iterations whose beginnings are stored.
const ITERATIONS: usize = 1 << 16;
/// The value of `died` while a block is live.
const LIVE: u64 = u64::MAX;

/// The life of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) key: Key,
    pub(crate) born: u64,
    died: u64,
    pub(crate) bytes: u64,
    birth: u32,
}

impl Life {
    /// The number of the event that freed it.
    pub(crate) fn died(&self) -> Option<u64> {
        (self.died != LIVE).then_some(self.died)
    }

    fn identity(&self) -> Identity {
        (self.key, self.birth, self.bytes)
    }
}

/// Blocks that events cannot distinguish: place, iteration of birth and size.
type Identity = (Key, u32, u64);

#[derive(Debug)]
pub(crate) struct LifetimeRecorder {
    pub(crate) events: u64,
    /// The number of events before each iteration.
    pub(crate) iterations: Vec<u64>,
    pub(crate) ended: Option<u64>,
    blocks: Vec<Life>,
    /// The indices of live blocks, the first to be allocated first.
    open: FxHashMap<Identity, VecDeque<usize>>,
    /// The size of the smallest stored blocks, once some were left out. No smaller block is stored,
    /// and no further one of this size.
    smallest: Option<u64>,
    /// The number of live blocks of this size that are not stored, without those of a known shape.
    unshaped: FxHashMap<Identity, u64>,
    pub(crate) left_out: u64,
    most: usize,
    samples: Samples,
}

/// Live bytes after each `stretch` events.
#[derive(Debug)]
struct Samples {
    stretch: u64,
    points: Vec<u64>,
}

impl Samples {
    fn push(&mut self, events: u64, live: u64) {
        if !events.is_multiple_of(self.stretch) {
            return;
        }
        self.points.push(live);
        if self.points.len() == SAMPLES {
            self.points = self.points.iter().skip(1).step_by(2).copied().collect();
            self.stretch *= 2;
        }
    }
}

impl LifetimeRecorder {
    /// An empty history of a space whose first event follows after `begun` iterations.
    pub(super) fn new(begun: u32) -> Self {
        Self::with_limit(begun, MOST_BLOCKS)
    }

    fn with_limit(begun: u32, most: usize) -> Self {
        Self {
            events: 0,
            iterations: vec![0; (begun as usize).min(ITERATIONS)],
            ended: None,
            blocks: Vec::new(),
            open: FxHashMap::default(),
            smallest: None,
            unshaped: FxHashMap::default(),
            left_out: 0,
            most,
            samples: Samples { stretch: 1, points: Vec::new() },
        }
    }

    pub(super) fn begin_iteration(&mut self) {
        if self.iterations.len() < ITERATIONS {
            self.iterations.push(self.events);
        }
    }

    pub(super) fn end_iteration(&mut self) {
        self.ended = Some(self.events);
    }

    /// Adds an allocation, after which `live` bytes are live.
    pub(super) fn allocated(&mut self, key: Key, block: &Block, live: u64) {
        self.event(live);
        let (born, birth, bytes) = (self.events, block.origin.birth, block.size);
        let life = Life { key, born, died: LIVE, bytes, birth };
        if self.smallest.is_some_and(|smallest| bytes <= smallest) {
            self.left_out += 1;
            self.note_left_out(&life);
            return;
        }
        self.open.entry(life.identity()).or_default().push_back(self.blocks.len());
        self.blocks.push(life);
        // PERF: at twice the number, so that blocks are sorted out only once in `most`
        // allocations.
        if self.blocks.len() >= 2 * self.most {
            self.drop_smallest();
        }
    }

    /// Adds a free, after which `live` bytes are live.
    pub(super) fn freed(&mut self, key: Key, block: &Block, live: u64) {
        self.event(live);
        let identity = (key, block.origin.birth, block.size);
        match self.close(identity, VecDeque::pop_front) {
            Some(index) => self.blocks[index].died = self.events,
            // Those that are stored were allocated first.
            None => {
                self.forget_left_out(identity);
            }
        }
    }

    /// The latest block of `from` was allocated for a tensor of another shape, that of `to`.
    pub(super) fn shaped(&mut self, from: Key, to: Key, block: &Block) {
        let identity = (from, block.origin.birth, block.size);
        // The latest, because a shape is found right after the allocation.
        if self.forget_left_out(identity) {
            return;
        }
        if let Some(index) = self.close(identity, VecDeque::pop_back) {
            self.blocks[index].key = to;
            self.open.entry(self.blocks[index].identity()).or_default().push_back(index);
        }
    }

    fn event(&mut self, live: u64) {
        self.events += 1;
        self.samples.push(self.events, live);
    }

    fn close(
        &mut self,
        identity: Identity,
        take: fn(&mut VecDeque<usize>) -> Option<usize>,
    ) -> Option<usize> {
        // PERF: blocks that are not stored need no search.
        if self.smallest.is_some_and(|smallest| identity.2 < smallest) {
            return None;
        }
        let indices = self.open.get_mut(&identity)?;
        let index = take(indices);
        if indices.is_empty() {
            self.open.remove(&identity);
        }
        index
    }

    /// Counts a block that is not stored, if equal ones may be stored: its shape and its free must
    /// not be taken for theirs. PERF: those of a known shape are not counted, because they have the
    /// shape already, and equal ones that are stored are freed before them.
    fn note_left_out(&mut self, life: &Life) {
        if Some(life.bytes) == self.smallest && life.died == LIVE && life.key.shape == 0 {
            *self.unshaped.entry(life.identity()).or_default() += 1;
        }
    }

    /// Removes a block that [`Self::note_left_out`] has counted. True if there was one.
    fn forget_left_out(&mut self, identity: Identity) -> bool {
        let Some(count) = self.unshaped.get_mut(&identity) else { return false };
        *count -= 1;
        if *count == 0 {
            self.unshaped.remove(&identity);
        }
        true
    }

    /// Keeps the largest blocks; of equal ones, the first.
    fn drop_smallest(&mut self) {
        let excess = self.blocks.len().saturating_sub(self.most);
        if excess == 0 {
            return;
        }
        let mut sizes: Vec<u64> = self.blocks.iter().map(|life| life.bytes).collect();
        let (_, &mut smallest, larger) = sizes.select_nth_unstable(excess);
        let mut equal = self.most - larger.iter().filter(|&&bytes| bytes > smallest).count();
        if self.smallest.replace(smallest) != Some(smallest) {
            self.unshaped.clear();
        }
        for life in std::mem::take(&mut self.blocks) {
            let takes_place = life.bytes == smallest && equal > 0;
            equal -= usize::from(takes_place);
            match life.bytes > smallest || takes_place {
                true => self.blocks.push(life),
                false => self.note_left_out(&life),
            }
        }
        self.left_out += excess as u64;
        self.open.clear();
        for (index, life) in self.blocks.iter().enumerate().filter(|(_, life)| life.died == LIVE) {
            self.open.entry(life.identity()).or_default().push_back(index);
        }
    }

    /// The blocks in the order of their births and, if some were left out, the number of events
    /// between two samples and the live bytes of the others at these.
    pub(crate) fn finish(mut self) -> (Vec<Life>, u64, Vec<u64>) {
        self.drop_smallest();
        if self.left_out == 0 {
            return (self.blocks, 0, Vec::new());
        }
        let Samples { stretch, points } = self.samples;
        let sample = |event: u64| (event.div_ceil(stretch) as usize).saturating_sub(1);
        let mut changes = vec![0i128; points.len() + 1];
        for life in &self.blocks {
            let end = points.len();
            changes[sample(life.born).min(end)] += i128::from(life.bytes);
            if let Some(died) = life.died() {
                changes[sample(died).min(end)] -= i128::from(life.bytes);
            }
        }
        let mut stored = 0;
        let rest = points.iter().zip(changes).map(|(&live, change)| {
            stored += change;
            u64::try_from(i128::from(live) - stored).unwrap_or(0)
        });
        let rest = rest.collect();
        (self.blocks, stretch, rest)
    }

    /// The number of blocks that [`Self::finish`] leaves out.
    pub(crate) fn count_left_out(&self) -> u64 {
        self.left_out + self.blocks.len().saturating_sub(self.most) as u64
    }
}

#[cfg(test)]
mod tests {
    use memcheck_core::space::Space;

    use super::*;
    use memcheck_ledger::block::Origin;

    const SPACE: Space = Space::Cuda(0);

    fn key(shape: u16) -> Key {
        Key { space: SPACE, context: 1, shape }
    }

    fn block(size: u64) -> Block {
        Block { size, space: SPACE, origin: Origin { birth: 1, context: 1, shape: 0 } }
    }

    fn lives(lifetimes: LifetimeRecorder) -> Vec<(u64, u64, Option<u64>)> {
        lifetimes.finish().0.iter().map(|life| (life.bytes, life.born, life.died())).collect()
    }

    fn shapes(lifetimes: LifetimeRecorder) -> Vec<(u16, Option<u64>)> {
        lifetimes.finish().0.iter().map(|life| (life.key.shape, life.died())).collect()
    }

    #[test]
    fn blocks_live_from_their_allocation_to_their_free() {
        let mut of = LifetimeRecorder::new(2);
        of.allocated(key(0), &block(8), 8);
        of.begin_iteration();
        of.allocated(key(0), &block(8), 16);
        of.shaped(key(0), key(7), &block(8));
        of.allocated(key(0), &block(4), 20);
        of.freed(key(7), &block(8), 12);
        of.freed(key(0), &block(99), 12);
        of.end_iteration();
        assert_eq!((of.iterations.as_slice(), of.ended), (&[0, 0, 1][..], Some(5)));
        assert_eq!(lives(of), [(8, 1, None), (8, 2, Some(4)), (4, 3, None)]);
    }

    #[test]
    fn of_equal_blocks_the_first_dies_first() {
        let mut of = LifetimeRecorder::new(0);
        of.allocated(key(0), &block(8), 8);
        of.allocated(key(0), &block(8), 16);
        of.freed(key(0), &block(8), 8);
        assert_eq!(lives(of), [(8, 1, Some(3)), (8, 2, None)]);
    }

    #[test]
    fn the_largest_blocks_are_stored_and_the_others_add_up() {
        let mut of = LifetimeRecorder::with_limit(0, 4);
        let mut live = 0;
        for size in [5, 1, 7, 2, 2, 9, 1, 2, 1, 6] {
            live += size;
            of.allocated(key(0), &block(size), live);
        }
        of.freed(key(0), &block(1), live - 1);
        of.freed(key(0), &block(9), live - 10);
        let left_out = of.count_left_out();
        let (blocks, stretch, rest) = of.finish();
        let bytes: Vec<u64> = blocks.iter().map(|life| life.bytes).collect();
        assert_eq!((bytes.as_slice(), left_out), (&[5, 7, 9, 6][..], 6));
        assert_eq!(stretch, 1);
        assert_eq!(rest, [0, 1, 1, 3, 5, 5, 6, 8, 9, 9, 8, 8]);
    }

    #[test]
    fn the_smallest_stored_blocks_die_too() {
        let mut of = LifetimeRecorder::with_limit(0, 2);
        let sizes = [5, 1, 1, 5];
        let mut live = 0;
        for size in sizes {
            live += size;
            of.allocated(key(0), &block(size), live);
        }
        of.freed(key(0), &block(5), live - 5);
        of.freed(key(0), &block(1), live - 6);
        // No further block of this size is stored, and its free is not that of a stored one.
        of.allocated(key(0), &block(5), live - 1);
        of.freed(key(0), &block(5), live - 6);
        of.freed(key(0), &block(5), live - 11);
        assert!(of.unshaped.is_empty());
        let (blocks, _, rest) = of.finish();
        let lives: Vec<_> = blocks.iter().map(|life| (life.born, life.died())).collect();
        assert_eq!(lives, [(1, Some(5)), (4, Some(8))]);
        assert_eq!(rest, [0, 1, 2, 2, 2, 1, 6, 6, 1]);
    }

    #[test]
    fn the_shape_of_a_block_that_is_not_stored_is_not_that_of_an_equal_one() {
        let mut of = LifetimeRecorder::with_limit(0, 2);
        for size in [5, 1, 1, 5] {
            of.allocated(key(0), &block(size), 0);
        }
        // The last one, although it was allocated before the smaller ones were left out.
        of.shaped(key(0), key(7), &block(5));
        // One that is not stored.
        of.allocated(key(0), &block(5), 0);
        of.shaped(key(0), key(7), &block(5));
        of.freed(key(7), &block(5), 0);
        of.freed(key(0), &block(5), 0);
        of.freed(key(7), &block(5), 0);
        assert_eq!(shapes(of), [(0, Some(7)), (7, Some(6))]);

        // A block that is left out by its own allocation.
        let mut of = LifetimeRecorder::with_limit(0, 1);
        of.allocated(key(0), &block(5), 0);
        of.allocated(key(0), &block(5), 0);
        of.shaped(key(0), key(7), &block(5));
        of.freed(key(0), &block(5), 0);
        assert_eq!(shapes(of), [(0, Some(3))]);
    }

    #[test]
    fn a_million_events_keep_their_bounds() {
        let mut of = LifetimeRecorder::with_limit(0, 100);
        for size in 0..500_000 {
            of.allocated(key(0), &block(size % 1000), 1000);
            of.freed(key(0), &block(size % 1000), 0);
        }
        assert!(
            of.blocks.len() <= 200 && of.open.len() <= 200 && of.samples.points.len() < SAMPLES
        );
        assert_eq!(of.unshaped.len(), 0);
        let (blocks, _, rest) = of.finish();
        assert_eq!((blocks.len(), rest.iter().max()), (100, Some(&0)));
        assert!(blocks.iter().all(|life| life.bytes == 999 && life.died() == Some(life.born + 1)));
    }
}
