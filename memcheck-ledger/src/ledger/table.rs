//! A table of live blocks that maps an address to two words.
//!
//! It uses open addressing over buckets of seven slots, without locks. The buckets are in levels.
//! Each level is one and a half times as large as the previous one and is used when the previous
//! ones are full. A few blocks therefore touch a few pages, and millions touch only as many as they
//! need. There are no tombstones: as in F14 tables, a bucket counts the blocks that did not fit
//! into it, and a search leaves a level at the first bucket whose count is 0.
//!
//! ```text
//! bucket (192 B)   keys[7] | overflow          one cache line, which a search reads
//!                  words[7]                    one more, read when the key is found
//! level k          2048 * 1.5^k buckets
//! ```
//!
//! An address is live at most once, and only its owner frees it, so that insertion and removal of
//! the same key never race. Operations on different keys in a bucket do race, but only in the
//! compare-exchange of a free slot and in the overflow count.
//!
//! Allocators return the block that was freed last, so that the address that a thread inserts next
//! is often the one that it has just removed. A thread therefore keeps the slot of its last removal
//! (`KeptSlot`): the slot stays claimed, and the thread can fill it again without a locked
//! instruction.
//!
//! Memory: 739 MiB of address space, whose pages are touched only when blocks are stored in them:
//! 27 bytes a slot, 30 to 50 a live block. If the table is full, `insert` returns false, the event
//! counts as lost, and the test is `not-measured`.

use std::sync::atomic::{
    AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use super::bucket::{Bucket, CLAIMED, KeptSlot, SLOTS, Words};
use crate::prefetch::{self, LINE};

/// An interpreter has no memory that costs nothing until it is touched.
const LEVELS: usize = if cfg!(miri) { 3 } else { 17 };
/// The index of the first bucket of each level, and the number of all buckets at the end.
const STARTS: [usize; LEVELS + 1] = starts();
const BUCKETS: usize = STARTS[LEVELS];
/// The number of addresses for which a table has room.
pub(super) const CAPACITY: usize = BUCKETS * SLOTS;
/// The number of buckets of a level that a block can try. The levels below the last one in use are
/// nearly full, so that a block tries only one bucket there.
const REACH: usize = 8;
const SHORT_REACH: usize = 1;
/// The number of levels in use that a block tries. These are the largest ones, with two thirds of
/// all room. If all levels were tried, the cost of a block would grow with the number of blocks.
const SEARCHED: usize = 3;

const fn starts() -> [usize; LEVELS + 1] {
    let mut starts = [0; LEVELS + 1];
    let mut size = 2048;
    let mut level = 0;
    while level < LEVELS {
        starts[level + 1] = starts[level] + size;
        size += size / 2;
        level += 1;
    }
    starts
}

/// A table. It must be static, because its memory is mapped once and never unmapped.
pub struct BlockTable {
    base: AtomicPtr<Bucket>,
    /// The number of levels in use.
    active: AtomicUsize,
    /// One bit for each bucket that was ever used, so that readers can skip the others.
    used: Bits,
    /// One bit for each bucket to which an address was added since the last census.
    changed: Bits,
}

type Bits = [AtomicU64; BUCKETS.div_ceil(64)];

/// Sets the bit of a bucket. PERF: the bit is mostly set already, which a plain load shows.
#[inline]
fn set(bits: &Bits, index: usize) {
    let (word, bit) = (&bits[index / 64], 1 << (index % 64));
    if word.load(Relaxed) & bit == 0 {
        word.fetch_or(bit, Relaxed);
    }
}

#[inline]
fn bucket(base: *mut Bucket, index: usize) -> &'static Bucket {
    debug_assert!(index < BUCKETS);
    // SAFETY: `base` is the mapping of `BUCKETS` buckets that `map` made and that is never
    // unmapped. Every index comes from `bucket_index`, which returns less than `BUCKETS`, from a
    // [`KeptSlot`] slot, which stores such an index, or from a set bit of such a bucket. A bucket
    // consists of integers and atomic integers, for which all bytes zero is a valid value.
    unsafe { &*base.add(index) }
}

/// Fibonacci hashing, because the low bits of addresses are alike.
#[inline]
fn hash(address: u64) -> u64 {
    (address >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The index of the bucket of a level that is `step` buckets after the home bucket of a hash.
#[inline]
fn bucket_index(level: usize, hash: u64, step: usize) -> usize {
    let size = STARTS[level + 1] - STARTS[level];
    let home = ((u128::from(hash) * size as u128) >> 64) as usize;
    let at = home + step;
    STARTS[level] + if at < size { at } else { at - size }
}

impl Default for BlockTable {
    fn default() -> Self {
        Self::new()
    }
}

impl BlockTable {
    /// A table without memory; see [`Self::map`].
    pub const fn new() -> Self {
        Self {
            base: AtomicPtr::new(std::ptr::null_mut()),
            active: AtomicUsize::new(1),
            used: [const { AtomicU64::new(0) }; BUCKETS.div_ceil(64)],
            changed: [const { AtomicU64::new(0) }; BUCKETS.div_ceil(64)],
        }
    }

    /// Maps the table, if that has not been done.
    pub fn map(&self) -> std::io::Result<()> {
        if !self.base.load(Acquire).is_null() {
            return Ok(());
        }
        let memory = crate::os::reserve(BUCKETS * size_of::<Bucket>())?.as_ptr().cast();
        // If another thread has mapped the table first, its mapping is used. Ours costs address
        // space only.
        let _ = self.base.compare_exchange(std::ptr::null_mut(), memory, AcqRel, Acquire);
        Ok(())
    }

    /// Adds an address. Returns `false` if the table is not mapped or has no room.
    // PERF: inlined, because most calls need the home bucket only, and a function call would pass
    // the words through memory.
    #[inline(always)]
    pub fn insert(&self, address: u64, words: Words, kept: Option<&KeptSlot>) -> bool {
        let base = self.base.load(Acquire);
        if base.is_null() || address <= CLAIMED {
            return false;
        }
        let hash = hash(address);
        let index = bucket_index(0, hash, 0);
        let home = bucket(base, index);
        if let Some(slot) = kept.and_then(|kept| kept.take_from(index)) {
            home.fill(slot, address, words);
            // After the slot is filled: a census that has just cleared the bit leaves the block to the
            // next one.
            set(&self.changed, index);
            return true;
        }
        match home.claim() {
            Some(slot) => {
                home.fill(slot, address, words);
                set(&self.used, index);
                set(&self.changed, index);
                true
            }
            None => self.insert_beyond(base, hash, address, words[0], words[1]),
        }
    }

    /// Adds an address whose home bucket is full.
    // PERF: takes two words, because an array would be written to memory in every call of `insert`.
    #[cold]
    #[inline(never)]
    fn insert_beyond(
        &self,
        base: *mut Bucket,
        hash: u64,
        address: u64,
        first: u64,
        second: u64,
    ) -> bool {
        let active = self.active.load(Relaxed);
        for level in active.saturating_sub(SEARCHED)..LEVELS {
            let reach = if level + 1 < active { SHORT_REACH } else { REACH };
            if self.insert_at(base, (level, reach), hash, address, [first, second]) {
                if level >= active {
                    self.active.fetch_max(level + 1, Relaxed);
                }
                return true;
            }
        }
        false
    }

    fn insert_at(
        &self,
        base: *mut Bucket,
        (level, reach): (usize, usize),
        hash: u64,
        address: u64,
        words: Words,
    ) -> bool {
        for step in 0..reach {
            let index = bucket_index(level, hash, step);
            let bucket = bucket(base, index);
            if let Some(slot) = bucket.claim() {
                bucket.fill(slot, address, words);
                set(&self.used, index);
                set(&self.changed, index);
                return true;
            }
            // Before the block is in a later bucket, so that no search for it ends here.
            bucket.overflow.fetch_add(1, Relaxed);
        }
        for step in 0..reach {
            bucket(base, bucket_index(level, hash, step)).overflow.fetch_sub(1, Relaxed);
        }
        false
    }

    /// Finds an address in any bucket.
    #[cold]
    #[inline(never)]
    fn find(&self, base: *mut Bucket, hash: u64, address: u64) -> Option<Found> {
        // PERF: the highest level first. New blocks go there, and of millions of blocks it has most.
        for level in (0..self.active.load(Relaxed)).rev() {
            for step in 0..REACH {
                let bucket = bucket(base, bucket_index(level, hash, step));
                if let Some(slot) = bucket.slot(address) {
                    return Some(Found { bucket, slot, level, step });
                }
                if bucket.overflow.load(Relaxed) == 0 {
                    break;
                }
            }
        }
        None
    }

    #[inline]
    fn locate(&self, address: u64) -> Option<(&'static Bucket, usize)> {
        let base = self.base.load(Acquire);
        if base.is_null() || address <= CLAIMED {
            return None;
        }
        let hash = hash(address);
        let home = bucket(base, bucket_index(0, hash, 0));
        match home.slot(address) {
            Some(slot) => Some((home, slot)),
            None => self.find(base, hash, address).map(|found| (found.bucket, found.slot)),
        }
    }

    /// Prefetches the home bucket of an address that will be added soon.
    #[inline]
    pub fn prefetch_home(&self, address: u64) {
        let base = self.base.load(Relaxed);
        let bucket = base.wrapping_add(bucket_index(0, hash(address), 0)).cast::<u8>();
        prefetch::to_write(bucket);
        prefetch::to_write(bucket.wrapping_add(LINE));
    }

    /// Removes an address. `None` if it is not in the table.
    // PERF: inlined for the same reason as `insert`.
    #[inline(always)]
    pub fn remove(&self, address: u64, kept: Option<&KeptSlot>) -> Option<Words> {
        let base = self.base.load(Acquire);
        if base.is_null() || address <= CLAIMED {
            return None;
        }
        let hash = hash(address);
        let index = bucket_index(0, hash, 0);
        let home = bucket(base, index);
        let Some(slot) = home.slot(address) else {
            return self.remove_beyond(base, hash, address);
        };
        let words = home.take(slot);
        let Some(kept) = kept else {
            home.release(slot);
            return Some(words);
        };
        if let Some((index, slot)) = kept.replace(index, slot) {
            bucket(base, index).release(slot);
        }
        Some(words)
    }

    /// Removes an address that is not in its home bucket.
    #[cold]
    #[inline(never)]
    fn remove_beyond(&self, base: *mut Bucket, hash: u64, address: u64) -> Option<Words> {
        let Found { bucket: found, slot, level, step } = self.find(base, hash, address)?;
        let words = found.take(slot);
        found.release(slot);
        for passed in 0..step {
            bucket(base, bucket_index(level, hash, passed)).overflow.fetch_sub(1, Relaxed);
        }
        Some(words)
    }

    /// The words of an address.
    pub(crate) fn get(&self, address: u64) -> Option<Words> {
        self.locate(address).map(|(bucket, slot)| bucket.read(slot))
    }

    /// Replaces the second word of an address by the result of `change` for both words. The caller
    /// must know that the address is not removed at the same time.
    pub(crate) fn update(&self, address: u64, change: impl FnOnce(Words) -> u64) {
        if let Some((bucket, slot)) = self.locate(address) {
            bucket.replace_second(slot, change(bucket.read(slot)));
        }
    }

    /// Passes the words of all entries that were added since the last call to `visit`, and sets
    /// [`COUNTED`](super::bucket::COUNTED) in them. The cost depends on the number of added
    /// entries, not on the number of all. Threads must not call it at the same time.
    pub(crate) fn count_new(&self, mut visit: impl FnMut(Words)) {
        self.buckets(|at| self.changed[at].swap(0, Relaxed), |bucket| bucket.count(&mut visit));
    }

    /// Passes every entry to `visit`. Changes that other threads make at the same time may be
    /// missed. A workload makes none between two iterations.
    pub fn each(&self, mut visit: impl FnMut(u64, Words)) {
        self.buckets(
            |at| self.used[at].load(Relaxed),
            |bucket| bucket.entries().for_each(|(address, words)| visit(address, words)),
        );
    }

    /// Passes the buckets to `visit` whose bits are set in the words that `bits` returns.
    fn buckets(&self, bits: impl Fn(usize) -> u64, mut visit: impl FnMut(&Bucket)) {
        let base = self.base.load(Acquire);
        if base.is_null() {
            return;
        }
        // Levels are used in order, so that no bucket beyond the active ones is in use.
        let levels = self.active.load(Relaxed).min(LEVELS);
        for place in 0..STARTS[levels].div_ceil(64) {
            let mut bits = bits(place);
            while bits != 0 {
                visit(bucket(base, place * 64 + bits.trailing_zeros() as usize));
                bits &= bits - 1;
            }
        }
    }
}

/// The position of an entry: its bucket, slot, level and distance from its home bucket.
struct Found {
    bucket: &'static Bucket,
    slot: usize,
    level: usize,
    step: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg_attr(miri, ignore = "an interpreter takes minutes for so many blocks")]
    #[test]
    fn addresses_beyond_the_first_level_are_found() {
        static TABLE: BlockTable = BlockTable::new();
        TABLE.map().unwrap();
        let address = |i: u64| 0x7000_0000_0000 + i * 1040;
        let count = 100_000;
        for i in 0..count {
            assert!(TABLE.insert(address(i), [i, !i], None));
        }
        assert!(TABLE.active.load(Relaxed) > 1, "the first level holds 14,336");
        TABLE.update(address(7), |_| 7);
        let mut seen = 0u64;
        TABLE.each(|at, [i, _]| {
            assert_eq!(at, address(i));
            seen += 1;
        });
        assert_eq!(seen, count);
        for i in 0..count {
            let second = if i == 7 { 7 } else { !i };
            assert_eq!(TABLE.remove(address(i), None), Some([i, second]));
            assert_eq!(TABLE.remove(address(i), None), None);
        }
        TABLE.each(|_, _| panic!("it is empty"));
    }

    #[test]
    fn a_kept_slot_is_reused_and_does_not_hide_other_addresses() {
        static TABLE: BlockTable = BlockTable::new();
        TABLE.map().unwrap();
        let kept = KeptSlot::new();
        let home = |address: u64| bucket_index(0, hash(address), 0);
        // Twice as many addresses with the same home as a bucket has slots.
        let alike: Vec<u64> = (0x100u64..)
            .map(|i| i << 4)
            .filter(|&address| home(address) == home(0x1000))
            .take(14)
            .collect();
        for round in 0..3 {
            for &address in &alike {
                assert!(TABLE.insert(address, [address, round], Some(&kept)));
            }
            // Another insertion fills the slots next to the one that is kept.
            assert_eq!(TABLE.remove(alike[0], Some(&kept)), Some([alike[0], round]));
            assert!(TABLE.insert(alike[0], [1, 1], None));
            assert_eq!(TABLE.remove(alike[0], None), Some([1, 1]));
            assert!(TABLE.insert(alike[0], [2, 2], Some(&kept)));
            assert_eq!(TABLE.remove(alike[0], Some(&kept)), Some([2, 2]));
            let mut seen = Vec::new();
            TABLE.each(|address, words| seen.push((address, words)));
            seen.sort_unstable();
            assert_eq!(seen, alike[1..].iter().map(|&at| (at, [at, round])).collect::<Vec<_>>());
            for &address in &alike[1..] {
                assert_eq!(TABLE.remove(address, Some(&kept)), Some([address, round]));
            }
        }
    }

    /// Bytes of the pages that contain a bucket that was used.
    fn touched(table: &BlockTable) -> usize {
        const PAGE: usize = 4096;
        let used = |index: usize| table.used[index / 64].load(Relaxed) >> (index % 64) & 1 == 1;
        let mut pages: Vec<usize> = (0..BUCKETS)
            .filter(|&index| used(index))
            .map(|index| index * size_of::<Bucket>() / PAGE)
            .collect();
        pages.dedup();
        pages.len() * PAGE
    }

    #[cfg_attr(miri, ignore = "an interpreter takes minutes for so many blocks")]
    #[test]
    fn a_live_block_costs_at_most_64_bytes() {
        static TABLE: BlockTable = BlockTable::new();
        TABLE.map().unwrap();
        let mut count = 0usize;
        for until in [20_000, 100_000, 1_000_000usize] {
            while count < until {
                // Addresses in no order, like those of an allocator after some time.
                let scattered = (count as u64).wrapping_mul(0xD134_2543_DE82_EF95) >> 20;
                assert!(TABLE.insert(0x6000_0000_0000 + scattered * 16, [0, 0], None));
                count += 1;
            }
            let each = touched(&TABLE) / count;
            println!("{count} live blocks: {each} B each");
            assert!(each <= 64, "{count} live blocks: {each} B each");
        }
    }
}
