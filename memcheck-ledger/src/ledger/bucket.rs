//! A bucket of the table with seven slots, and the slot that a thread keeps for its next address.

use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// The keys and the overflow count fill one cache line, which is all that most searches read.
pub(super) const SLOTS: usize = 7;

/// A key that is not an address. A thread owns the slot, either to write its words or as its
/// [`KeptSlot`] slot.
pub(super) const CLAIMED: u64 = 1;

/// The words that the table stores for an address. The first word of a block is never 0.
pub(crate) type Words = [u64; 2];

/// The bit of the first word that a census sets when it has counted the block.
pub(crate) const COUNTED: u64 = 1 << 63;

#[repr(C, align(64))]
pub(super) struct Bucket {
    keys: [AtomicU64; SLOTS],
    pub(super) overflow: AtomicU64,
    // PERF: the two words of a slot are adjacent, so that they are in one cache line.
    words: [[AtomicU64; 2]; SLOTS],
    _pad: [u64; 2],
}

const _: () = assert!(size_of::<Bucket>() == 192);

impl Bucket {
    #[inline]
    pub(super) fn slot(&self, address: u64) -> Option<usize> {
        self.keys.iter().position(|key| key.load(Acquire) == address)
    }

    /// Claims a free slot; `None` if the bucket is full.
    #[inline]
    pub(super) fn claim(&self) -> Option<usize> {
        // PERF: a plain load shows most of the slots that are in use. Acquire, because the former
        // owner's last change of the words must come before the new words.
        self.keys.iter().position(|key| {
            key.load(Relaxed) == 0 && key.compare_exchange(0, CLAIMED, Acquire, Relaxed).is_ok()
        })
    }

    /// Fills a claimed slot. The key is written last, so that a census on another thread reads a
    /// complete entry or none.
    #[inline]
    pub(super) fn fill(&self, slot: usize, address: u64, words: Words) {
        self.write(slot, words);
        self.keys[slot].store(address, Release);
    }

    /// Removes the address and its words from a slot, which stays claimed.
    #[inline]
    pub(super) fn take(&self, slot: usize) -> Words {
        let [first, second] = &self.words[slot];
        // A swap, because a census can set `COUNTED` at the same time. If the census comes first,
        // the owner reads the bit here; otherwise the census finds no block to count.
        let words = [first.swap(0, Relaxed), second.load(Relaxed)];
        // Relaxed, because a census that still reads the address finds a first word of 0.
        self.keys[slot].store(CLAIMED, Relaxed);
        words
    }

    #[inline]
    pub(super) fn release(&self, slot: usize) {
        self.keys[slot].store(0, Release);
    }

    /// Sets [`COUNTED`] in all entries that lack it and passes their words to `visit`.
    pub(super) fn count(&self, mut visit: impl FnMut(Words)) {
        for (key, [first, second]) in self.keys.iter().zip(&self.words) {
            if key.load(Acquire) <= CLAIMED {
                continue;
            }
            // The slot can have another block meanwhile, whose first word is written last.
            let words = [first.load(Acquire), second.load(Relaxed)];
            let is_new = words[0] != 0 && words[0] & COUNTED == 0;
            let counted = words[0] | COUNTED;
            if is_new && first.compare_exchange(words[0], counted, Relaxed, Relaxed).is_ok() {
                visit([counted, words[1]]);
            }
        }
    }

    /// All addresses with their words. Entries that other threads add or remove at the same time
    /// may be missing or have a first word of 0.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, Words)> {
        self.keys.iter().enumerate().filter_map(|(slot, key)| {
            let address = key.load(Acquire);
            (address > CLAIMED).then(|| (address, self.read(slot)))
        })
    }

    #[inline]
    pub(super) fn read(&self, slot: usize) -> Words {
        let [first, second] = &self.words[slot];
        [first.load(Acquire), second.load(Relaxed)]
    }

    #[inline]
    fn write(&self, slot: usize, [first, second]: Words) {
        // The first word is 0 until then. A census that has read the key of the block before sees
        // it, and must not take the second word of that block for this one's.
        self.words[slot][1].store(second, Relaxed);
        self.words[slot][0].store(first, Release);
    }

    pub(super) fn replace_second(&self, slot: usize, second: u64) {
        self.words[slot][1].store(second, Relaxed);
    }
}

/// The slot of the last address that a thread removed, if that slot was in the address's home
/// bucket of the first level. No other thread uses it. The slot stays claimed when the thread ends,
/// so each thread costs at most one slot.
#[derive(Debug)]
pub struct KeptSlot {
    /// `bucket * STRIDE + slot + 1`; 0 if no slot is kept.
    slot: AtomicUsize,
}

impl KeptSlot {
    const STRIDE: usize = SLOTS + 1;

    pub const fn new() -> Self {
        Self { slot: AtomicUsize::new(0) }
    }

    /// Returns the kept slot of bucket `index` and stops keeping it.
    #[inline]
    pub(super) fn take_from(&self, index: usize) -> Option<usize> {
        let slot = self.slot.load(Relaxed).wrapping_sub(index * Self::STRIDE + 1);
        (slot < SLOTS).then(|| {
            self.slot.store(0, Relaxed);
            slot
        })
    }

    /// Keeps a slot and returns the bucket and slot that were kept before.
    #[inline]
    pub(super) fn replace(&self, index: usize, slot: usize) -> Option<(usize, usize)> {
        let before = self.slot.load(Relaxed);
        self.slot.store(index * Self::STRIDE + slot + 1, Relaxed);
        let before = before.checked_sub(1)?;
        Some((before / Self::STRIDE, before % Self::STRIDE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_census_never_mixes_the_words_of_two_blocks() {
        const ROUNDS: u64 = if cfg!(miri) { 300 } else { 300_000 };
        let bucket = Bucket {
            keys: [const { AtomicU64::new(0) }; SLOTS],
            overflow: AtomicU64::new(0),
            words: [const { [const { AtomicU64::new(0) }; 2] }; SLOTS],
            _pad: [0; 2],
        };
        let counted = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let owner = scope.spawn(|| {
                let slot = bucket.claim().unwrap();
                for number in 1..ROUNDS {
                    bucket.fill(slot, 0x1000, [number, !number]);
                    let [first, second] = bucket.take(slot);
                    assert_eq!((first & !COUNTED, second), (number, !number));
                }
            });
            while !owner.is_finished() {
                bucket.count(|[first, second]| {
                    assert_eq!(second, !(first & !COUNTED));
                    counted.fetch_add(1, Relaxed);
                });
            }
        });
        println!("{} blocks were counted", counted.load(Relaxed));
    }

    #[test]
    fn a_kept_slot_is_returned_once_and_to_its_own_bucket() {
        let kept = KeptSlot::new();
        assert_eq!(kept.replace(0, 0), None);
        assert_eq!(kept.take_from(1), None);
        assert_eq!(kept.take_from(0), Some(0));
        assert_eq!(kept.take_from(0), None);
        assert_eq!(kept.replace(5, 6), None);
        assert_eq!((kept.take_from(4), kept.take_from(6)), (None, None));
        assert_eq!(kept.replace(7, 1), Some((5, 6)));
        assert_eq!(kept.take_from(7), Some(1));
    }
}
