//! Numbers for values that repeat on the allocation path: call stacks and types of tensors.
//!
//! A value is a few words with a hash. The table has a fixed size and finds a value by its hash.
//! The position in the table is the number of the value, so that two threads that add the same
//! value at the same time get the same number without waiting for each other. The first of them
//! writes the words. The functions take no lock and do not allocate.
//!
//! If the table is full, a value has no number or no words, and [`Interner::is_complete`] returns
//! false.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::mapping;

/// The greatest distance of a value from the position of its hash.
const REACH: usize = 64;

/// A table of values.
pub struct Interner {
    places: usize,
    words: usize,
    tables: OnceLock<Tables>,
}

struct Tables {
    /// Hashes; 0 is a free position.
    hashes: &'static [AtomicU64],
    /// The position of the words: offset << 16 | (length + 1); 0 if they are not written yet.
    spans: &'static [AtomicU64],
    words: &'static [AtomicU64],
    used: AtomicU64,
    /// True if a value or its words did not fit.
    overflowed: AtomicBool,
}

impl Interner {
    /// A table for at most `places` values that have at most `words` words in total.
    pub const fn new(places: usize, words: usize) -> Self {
        Self { places, words, tables: OnceLock::new() }
    }

    /// Maps the table, if that has not been done.
    pub fn map(&self) -> std::io::Result<()> {
        if self.tables.get().is_none() {
            let _ = self.tables.set(Tables {
                hashes: mapping::slice(self.places)?,
                spans: mapping::slice(self.places)?,
                words: mapping::slice(self.words)?,
                used: AtomicU64::new(0),
                overflowed: AtomicBool::new(false),
            });
        }
        Ok(())
    }

    /// The number of a value, starting at 1; 0 if the table is full or not mapped. If there is no
    /// room for the words, the value has a number, but [`Interner::words`] returns `None` for it.
    pub fn number(&self, hash: u64, words: impl ExactSizeIterator<Item = u64>) -> u32 {
        let Some(tables) = self.tables.get() else { return 0 };
        // 0 is a free position.
        let hash = hash | 1;
        let home = (hash >> 32) as usize;
        for step in 0..REACH {
            let place = (home + step) % self.places;
            let found = tables.hashes[place].load(Relaxed);
            if found == hash {
                return place as u32 + 1;
            }
            if found != 0 {
                continue;
            }
            // Relaxed, because the hash alone decides the number. The words are published by their span.
            match tables.hashes[place].compare_exchange(0, hash, Relaxed, Relaxed) {
                Ok(_) => {
                    tables.write(place, words);
                    return place as u32 + 1;
                }
                Err(other) if other == hash => return place as u32 + 1,
                Err(_) => {}
            }
        }
        tables.overflowed.store(true, Relaxed);
        0
    }

    /// True if every value so far has a number and words.
    pub fn is_complete(&self) -> bool {
        self.tables.get().is_none_or(|tables| !tables.overflowed.load(Relaxed))
    }

    /// The words of the value with this number.
    pub fn words(&self, number: u32) -> Option<Vec<u64>> {
        let tables = self.tables.get()?;
        let place = usize::try_from(number.checked_sub(1)?).ok()?;
        let span = tables.spans.get(place)?.load(Acquire);
        let (offset, length) = ((span >> 16) as usize, ((span & 0xFFFF) as usize).checked_sub(1)?);
        let words = tables.words.get(offset..offset + length)?;
        Some(words.iter().map(|word| word.load(Relaxed)).collect())
    }
}

impl Tables {
    #[cold]
    fn write(&self, place: usize, words: impl ExactSizeIterator<Item = u64>) {
        let length = words.len();
        let offset = self.used.fetch_add(length as u64, Relaxed);
        let room = self.words.get(offset as usize..offset as usize + length);
        // A span has 16 bits for the length plus one.
        let Some(room) = room.filter(|_| length < 0xFFFF) else {
            self.overflowed.store(true, Relaxed);
            return;
        };
        for (to, word) in room.iter().zip(words) {
            to.store(word, Relaxed);
        }
        self.spans[place].store(offset << 16 | (length as u64 + 1), Release);
    }
}

/// Adds a word to a hash.
#[inline]
pub fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 29
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_number_and_are_found_by_it() {
        static TABLE: Interner = Interner::new(1 << 8, 1 << 10);
        TABLE.map().unwrap();
        let number =
            |words: &[u64]| TABLE.number(words.iter().copied().fold(0, mix), words.iter().copied());
        let one = number(&[1, 2, 3]);
        assert_eq!(number(&[1, 2, 3]), one);
        assert_eq!(TABLE.words(one), Some(vec![1, 2, 3]));
        let other = number(&[3, 2, 1]);
        assert_ne!(other, one);
        assert_eq!(TABLE.words(other), Some(vec![3, 2, 1]));
        let nothing = number(&[]);
        assert_eq!(TABLE.words(nothing), Some(vec![]));
        assert_eq!(TABLE.words(0), None);
    }

    #[test]
    fn a_full_table_is_not_complete() {
        static FEW_WORDS: Interner = Interner::new(1 << 8, 4);
        FEW_WORDS.map().unwrap();
        let first = FEW_WORDS.number(mix(0, 1), [1, 2, 3].into_iter());
        assert_eq!(FEW_WORDS.words(first), Some(vec![1, 2, 3]));
        assert!(FEW_WORDS.is_complete());
        let second = FEW_WORDS.number(mix(0, 2), [4, 5].into_iter());
        assert!(second != 0 && second != first, "the numbers still distinguish the values");
        assert_eq!(FEW_WORDS.words(second), None);
        assert!(!FEW_WORDS.is_complete());

        static FEW_PLACES: Interner = Interner::new(1, 4);
        FEW_PLACES.map().unwrap();
        assert_eq!(FEW_PLACES.number(mix(0, 1), [1].into_iter()), 1);
        assert!(FEW_PLACES.is_complete());
        assert_eq!(FEW_PLACES.number(mix(0, 2), [2].into_iter()), 0);
        assert!(!FEW_PLACES.is_complete());
    }

    #[test]
    fn threads_agree_on_numbers() {
        const COUNT: u64 = if cfg!(miri) { 20 } else { 500 };
        static TABLE: Interner = Interner::new(1 << 12, 1 << 14);
        TABLE.map().unwrap();
        let numbers = || -> Vec<u32> {
            (0..COUNT).map(|i| TABLE.number(mix(7, i), [i, i + 1].into_iter())).collect()
        };
        let all: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(numbers)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
        assert!(all[0].iter().all(|&number| number != 0));
    }
}
