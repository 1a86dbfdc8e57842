//! The counters of a stream-ordered memory pool.
//!
//! `used` is the sum of the pool's live blocks as requested. `reserved` is the number of
//! [chunks](CHUNK) of the pool's own addresses that are mapped. A block maps the chunks that it
//! touches, and a chunk stays mapped until the program synchronizes while no block touches it. A
//! block gets the smallest gap that fits, also if a part of the gap is not mapped.
//!
//! These rules were fitted to an H200 (`tests/recordings/nvidia-h200/pool.calls`), and reproduce that
//! recording, in which the program synchronizes after each call. A driver gives memory that is free,
//! but not synchronized yet, to the next requests in another order, which is not known. `reserved`
//! is therefore an ESTIMATE.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::code::{Answer, Code};
use crate::gaps::Gaps;
use crate::memory::rounded;

/// The step in which a pool maps memory, and the alignment of each step in its addresses.
pub(crate) const CHUNK: u64 = 32 << 20;

/// The addresses of a pool, which are more than every device has.
const SPAN: u64 = 1 << 48;

/// The values of `CUmemPool_attribute` that are simulated.
pub(crate) mod attribute {
    pub(crate) const REUSE_FIRST: i32 = 1;
    pub(crate) const REUSE_LAST: i32 = 3;
    pub(crate) const RELEASE_THRESHOLD: i32 = 4;
    pub(crate) const RESERVED_CURRENT: i32 = 5;
    pub(crate) const RESERVED_HIGH: i32 = 6;
    pub(crate) const USED_CURRENT: i32 = 7;
    pub(crate) const USED_HIGH: i32 = 8;
}

#[derive(Debug)]
pub(crate) struct Pool {
    /// The ordinal of the pool's device.
    pub(crate) device: usize,
    /// False for the device's default pool, which cannot be destroyed.
    pub(crate) created: bool,
    /// The most chunks that the pool can map.
    most: u64,
    threshold: u64,
    used: u64,
    used_high: u64,
    reserved_high: u64,
    reuse: [i32; 3],
    gaps: Gaps,
    /// From the address of a live block to its place in the pool's own addresses.
    places: HashMap<u64, u64>,
    /// The blocks that touch a chunk, by the number of the chunk.
    touched: BTreeMap<u64, usize>,
    mapped: BTreeSet<u64>,
}

impl Pool {
    /// The default pool of a device.
    pub(crate) fn of_device(device: usize) -> Self {
        Self {
            device,
            created: false,
            most: u64::MAX,
            threshold: 0,
            used: 0,
            used_high: 0,
            reserved_high: 0,
            // On in a new pool, as CUDA documents.
            reuse: [1; 3],
            gaps: Gaps::new(0, SPAN),
            places: HashMap::new(),
            touched: BTreeMap::new(),
            mapped: BTreeSet::new(),
        }
    }

    /// A pool that the program creates. It holds at most `bytes`, rounded up to chunks; without a
    /// limit if that is 0.
    pub(crate) fn created(device: usize, bytes: u64) -> Self {
        let most = if bytes == 0 { u64::MAX } else { bytes.div_ceil(CHUNK) };
        Self { created: true, most, ..Self::of_device(device) }
    }

    /// Adds the block at `address`, unless the pool would exceed its limit.
    pub(crate) fn allocated(&mut self, address: u64, bytes: u64) -> Answer {
        let place = self.gaps.take(rounded(bytes)).ok_or(Code::OUT_OF_MEMORY)?;
        let new = chunks(place, bytes).filter(|chunk| !self.mapped.contains(chunk)).count() as u64;
        if new > self.most.saturating_sub(self.mapped.len() as u64) {
            self.gaps.give_back(place, rounded(bytes));
            return Err(Code::OUT_OF_MEMORY);
        }
        for chunk in chunks(place, bytes) {
            self.mapped.insert(chunk);
            *self.touched.entry(chunk).or_default() += 1;
        }
        self.places.insert(address, place);
        self.used += bytes;
        self.used_high = self.used_high.max(self.used);
        self.reserved_high = self.reserved_high.max(self.reserved());
        Ok(())
    }

    pub(crate) fn freed(&mut self, address: u64, bytes: u64) {
        let Some(place) = self.places.remove(&address) else { return };
        self.used -= bytes;
        self.gaps.give_back(place, rounded(bytes));
        for chunk in chunks(place, bytes) {
            if let Some(blocks) = self.touched.get_mut(&chunk) {
                *blocks -= 1;
                if *blocks == 0 {
                    self.touched.remove(&chunk);
                }
            }
        }
    }

    /// Unmaps the chunks without blocks, except for as many as the release threshold keeps, which are
    /// at most its bytes on an H200.
    pub(crate) fn synchronized(&mut self) {
        self.keep(self.threshold / CHUNK);
    }

    /// Unmaps chunks without blocks as long as `bytes` or more stay, as an H200 does.
    pub(crate) fn trim(&mut self, bytes: u64) {
        self.keep(bytes.div_ceil(CHUNK));
    }

    fn keep(&mut self, chunks: u64) {
        let surplus = (self.mapped.len() as u64).saturating_sub(chunks);
        let unused = self.mapped.iter().rev().filter(|chunk| !self.touched.contains_key(chunk));
        let unused = unused.copied().take(usize::try_from(surplus).unwrap_or(usize::MAX));
        for chunk in unused.collect::<Vec<u64>>() {
            self.mapped.remove(&chunk);
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.mapped.len() as u64 * CHUNK
    }

    pub(crate) fn counter(&self, attribute: i32) -> Answer<u64> {
        match attribute {
            attribute::RELEASE_THRESHOLD => Ok(self.threshold),
            attribute::RESERVED_CURRENT => Ok(self.reserved()),
            attribute::RESERVED_HIGH => Ok(self.reserved_high),
            attribute::USED_CURRENT => Ok(self.used),
            attribute::USED_HIGH => Ok(self.used_high),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// Sets a 64-bit attribute. The high-water marks accept only 0, which resets them to the
    /// current value.
    pub(crate) fn set_counter(&mut self, attribute: i32, value: u64) -> Answer {
        match (attribute, value) {
            (attribute::RELEASE_THRESHOLD, _) => self.threshold = value,
            (attribute::RESERVED_HIGH, 0) => self.reserved_high = self.reserved(),
            (attribute::USED_HIGH, 0) => self.used_high = self.used,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    /// Returns one of the three reuse flags, which have no effect here.
    pub(crate) fn reuse(&mut self, attribute: i32) -> Option<&mut i32> {
        match attribute {
            attribute::REUSE_FIRST..=attribute::REUSE_LAST => {
                self.reuse.get_mut((attribute - attribute::REUSE_FIRST) as usize)
            }
            _ => None,
        }
    }
}

/// The numbers of the chunks that a block at `place` touches.
fn chunks(place: u64, bytes: u64) -> std::ops::RangeInclusive<u64> {
    place / CHUNK..=(place + rounded(bytes) - 1) / CHUNK
}

#[cfg(test)]
mod tests {
    use super::attribute::*;
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn reserved_falls_to_the_chunks_in_use_when_the_program_synchronizes() {
        let mut pool = Pool::of_device(0);
        pool.allocated(1, CHUNK).unwrap();
        pool.allocated(2, 1).unwrap();
        assert_eq!(pool.counter(USED_CURRENT), Ok(CHUNK + 1));
        assert_eq!(pool.reserved(), 2 * CHUNK);
        pool.freed(1, CHUNK);
        assert_eq!(pool.reserved(), 2 * CHUNK);
        pool.synchronized();
        assert_eq!(pool.reserved(), CHUNK);
        assert_eq!(pool.counter(RESERVED_HIGH), Ok(2 * CHUNK));
        pool.set_counter(RESERVED_HIGH, 0).unwrap();
        pool.set_counter(USED_HIGH, 0).unwrap();
        assert_eq!(pool.counter(RESERVED_HIGH), Ok(CHUNK));
        assert_eq!(pool.counter(USED_HIGH), Ok(1));
        assert_eq!(pool.set_counter(USED_HIGH, 1), Err(Code::INVALID_VALUE));
        assert_eq!(pool.set_counter(USED_CURRENT, 0), Err(Code::INVALID_VALUE));
    }

    /// Six blocks of 40 MiB, as on an H200.
    #[test]
    fn a_block_maps_the_chunks_that_it_touches() {
        let mut pool = Pool::of_device(0);
        let grown = [1, 2, 3, 4, 5, 6].map(|block| {
            pool.allocated(block, 40 * MIB).unwrap();
            pool.reserved() / MIB
        });
        assert_eq!(grown, [64, 96, 128, 160, 224, 256]);
        let shrunk = [1, 2, 3, 4, 5, 6].map(|block| {
            pool.freed(block, 40 * MIB);
            pool.synchronized();
            pool.reserved() / MIB
        });
        assert_eq!(shrunk, [224, 192, 160, 96, 64, 0]);
    }

    /// A threshold keeps at most its bytes, and a trim at least its bytes, as on an H200.
    #[test]
    fn a_threshold_is_rounded_down_and_a_trim_up() {
        for (threshold, kept) in [(1, 0), (40, 32), (64, 64), (100, 96), (1000, 128)] {
            let mut pool = Pool::of_device(0);
            pool.set_counter(RELEASE_THRESHOLD, threshold * MIB).unwrap();
            pool.allocated(1, 100 * MIB).unwrap();
            pool.freed(1, 100 * MIB);
            pool.synchronized();
            assert_eq!(pool.reserved(), kept * MIB);
        }
        let mut pool = Pool::of_device(0);
        pool.allocated(1, 100 * MIB).unwrap();
        pool.freed(1, 100 * MIB);
        let trimmed = [50, 10, 1, 0].map(|bytes| {
            pool.trim(bytes * MIB);
            pool.reserved() / MIB
        });
        assert_eq!(trimmed, [64, 32, 32, 0]);
    }

    /// A pool of at most 100 MiB refuses the second block of 60 MiB, as on an H200.
    #[test]
    fn a_pool_with_a_limit_refuses_a_block_that_exceeds_it() {
        let mut pool = Pool::created(0, 100 * MIB);
        for (block, bytes) in [(1, 1000), (2, 30 * MIB), (3, 60 * MIB)] {
            pool.allocated(block, bytes).unwrap();
        }
        assert_eq!(pool.allocated(4, 60 * MIB), Err(Code::OUT_OF_MEMORY));
        assert_eq!(pool.reserved(), 96 * MIB);
        pool.allocated(4, 5 * MIB).unwrap();
        assert_eq!(pool.counter(USED_CURRENT), Ok(1000 + 95 * MIB));
    }
}
