//! The deaths of blocks that a census has counted: a bounded queue without locks, from many threads
//! to the thread that takes the census.
//!
//! A thread claims a place only if there is room, so that every claimed place will be written. If
//! the queue is full, it is incomplete from then on, and each census must read all live blocks.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::bucket::Words;
use crate::mapping;

/// The number of deaths that fit between two censuses: 4 MiB, whose pages are touched only when
/// they are used.
const CAPACITY: u64 = if cfg!(miri) { 1 << 6 } else { 1 << 18 };

/// A queue. It must be static, because its memory is mapped once and never unmapped.
pub(super) struct Deaths {
    /// Two words for each death.
    places: OnceLock<&'static [AtomicU64]>,
    /// The number of places that were claimed. The next field is the number of deaths that were
    /// taken out.
    claimed: AtomicU64,
    taken: AtomicU64,
    incomplete: AtomicBool,
}

impl Deaths {
    pub(super) const fn new() -> Self {
        Self {
            places: OnceLock::new(),
            claimed: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            incomplete: AtomicBool::new(false),
        }
    }

    /// Maps the queue, if that has not been done.
    pub(super) fn map(&self) -> std::io::Result<()> {
        if self.places.get().is_none() {
            let _ = self.places.set(mapping::slice::<AtomicU64>(2 * CAPACITY as usize)?);
        }
        Ok(())
    }

    fn slot(&self, number: u64) -> Option<&'static [AtomicU64; 2]> {
        let at = (number % CAPACITY) as usize * 2;
        self.places.get()?.get(at..at + 2)?.try_into().ok()
    }

    /// Adds the words of a block that has died.
    #[cold]
    pub(super) fn push(&self, [first, second]: Words) {
        // Acquire, because the census must have emptied the place before it is written again.
        let room =
            |claimed: u64| (claimed < self.taken.load(Acquire) + CAPACITY).then_some(claimed + 1);
        let claimed = self.claimed.fetch_update(Relaxed, Relaxed, room);
        match claimed.ok().and_then(|number| self.slot(number)) {
            Some([to_first, to_second]) => {
                // The first word last: if it is not 0, both are written.
                to_second.store(second, Relaxed);
                to_first.store(first, Release);
            }
            None => self.incomplete.store(true, Relaxed),
        }
    }

    /// Takes out all deaths so far and passes their words to `visit`. Returns false if some are
    /// missing; all later calls then return false too. Threads must not call it at the same time.
    pub(super) fn take(&self, mut visit: impl FnMut(Words)) -> bool {
        if self.incomplete.load(Relaxed) {
            return false;
        }
        let end = self.claimed.load(Relaxed);
        let mut number = self.taken.load(Relaxed);
        while number < end {
            let Some([first, second]) = self.slot(number) else { return false };
            // The first word of a block is never 0. If it is 0, another thread is about to write
            // it.
            let words = [first.load(Acquire), second.load(Relaxed)];
            if words[0] == 0 {
                break;
            }
            first.store(0, Relaxed);
            visit(words);
            number += 1;
        }
        self.taken.store(number, Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_are_taken_once_and_in_order_and_a_full_queue_is_incomplete() {
        static DEATHS: Deaths = Deaths::new();
        DEATHS.map().unwrap();
        let mut taken = Vec::new();
        for lap in 0..3 {
            (1..=CAPACITY / 2 + 7).for_each(|number| DEATHS.push([number, lap]));
            taken.clear();
            assert!(DEATHS.take(|words| taken.push(words)));
            assert!(taken.iter().copied().eq((1..=CAPACITY / 2 + 7).map(|number| [number, lap])));
            assert!(DEATHS.take(|words| panic!("{words:?} was taken before")));
        }
        (0..CAPACITY).for_each(|_| DEATHS.push([1, 1]));
        assert!(!DEATHS.incomplete.load(Relaxed));
        DEATHS.push([1, 1]);
        assert!(!DEATHS.take(|_| ()));
    }
}
