//! A bounded queue without locks, from many threads to one.
//!
//! An event is two words. The pushing thread draws the number of the event, which gives its place
//! in the order and its slot. The lowest bits of the first word are the lap round the queue in
//! which it was written, so that the taking thread can see whether a slot has been written and
//! never has to write to slots. The taking thread publishes its progress from time to time. A
//! pushing thread waits only if it is a whole lap ahead of that.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::Event;
use crate::block::{Block, Origin, index, space};
use crate::mapping;
use crate::prefetch;

/// The number of events that fit: 2 MiB. An interpreter is too slow to fill so many.
const CAPACITY: u64 = if cfg!(miri) { 1 << 6 } else { 1 << 17 };
/// The taking thread publishes its progress after this number of events, because every push reads
/// the cache line of that number, and each publication takes it from all of them.
const STRIDE: u64 = if cfg!(miri) { 1 << 3 } else { 1 << 10 };
const WORDS: usize = 2;
/// A slot is prefetched this number of events before it is written.
const AHEAD: u64 = 16;

/// Each slot has two words: kind, space, size and lap; origin.
static SLOTS: OnceLock<&'static [AtomicU64]> = OnceLock::new();
static NEXT: Counter = Counter(AtomicU64::new(0));
static TAKEN: Counter = Counter(AtomicU64::new(0));

/// A number on cache lines that it shares with no other data.
#[repr(align(128))]
struct Counter(AtomicU64);

/// Maps the queue, if that has not been done.
pub fn map() -> std::io::Result<()> {
    if SLOTS.get().is_none() {
        let _ = SLOTS.set(mapping::slice::<AtomicU64>(CAPACITY as usize * WORDS)?);
    }
    Ok(())
}

fn slot(number: u64) -> Option<&'static [AtomicU64; WORDS]> {
    let at = (number % CAPACITY) as usize * WORDS;
    SLOTS.get()?.get(at..at + WORDS)?.try_into().ok()
}

/// The lowest bits of an event's lap. They differ from those of the previous lap, and in the first
/// lap from those of an empty slot.
fn lap(number: u64) -> u64 {
    (number / CAPACITY + 1) & (LAPS - 1)
}

// PERF: encoded where the event is created, so that it is passed on in registers.
#[inline]
pub(super) fn push(event: Event) {
    let words = encode(event);
    // Relaxed, because the number only gives the order. The slot is published by its lap.
    write(NEXT.0.fetch_add(1, Relaxed), words);
}

#[inline]
pub(super) fn push_pair(first: Event, second: Event) {
    let (first, second) = (encode(first), encode(second));
    let number = NEXT.0.fetch_add(2, Relaxed);
    write(number, first);
    write(number + 1, second);
}

fn write(number: u64, (head, origin): (u64, u64)) {
    let Some(slot) = slot(number) else { return };
    // Acquire, because the collector must have read the slot's former event before it is overwritten.
    if number >= TAKEN.0.load(Acquire) + CAPACITY && !wait_for_room(number) {
        return;
    }
    // PERF: the cache line is owned by the core of the collector.
    if let Some(ahead) = self::slot(number + AHEAD) {
        prefetch::to_write(ahead);
    }
    // The lap is in the first word, so that the second one is complete once the lap fits.
    slot[1].store(origin, Relaxed);
    slot[0].store(head << LAP_BITS | lap(number), Release);
}

/// Waits until the collector has taken the event of the previous lap. `false` if the collector does
/// not exist any more.
#[cold]
fn wait_for_room(number: u64) -> bool {
    let mut waited = 0u32;
    while number >= TAKEN.0.load(Acquire) + CAPACITY {
        waited += 1;
        if waited < 64 {
            std::hint::spin_loop();
        } else if super::ENDED.load(Relaxed) {
            return false;
        } else {
            // The collector may have no processor to make room on.
            std::thread::yield_now();
        }
    }
    true
}

/// Takes the event with this number, if it has been written.
pub fn take(number: u64) -> Option<Event> {
    let slot = slot(number)?;
    let head = slot[0].load(Acquire);
    if head & (LAPS - 1) != lap(number) {
        return None;
    }
    let event = decode(head >> LAP_BITS, slot[1].load(Relaxed));
    if (number + 1).is_multiple_of(STRIDE) {
        TAKEN.0.store(number + 1, Release);
    }
    Some(event)
}

const SIZE_BITS: u32 = 48;
/// The largest size that an event can hold. Only the size of a refused allocation can be larger,
/// and the ledger stores that size in full.
const LARGEST: u64 = (1 << SIZE_BITS) - 1;
const SPACE_BITS: u32 = 8;
/// A slot is at most one lap behind, so that two laps and an empty slot must differ. The kind has the
/// other four bits of the word.
const LAP_BITS: u32 = 4;
const LAPS: u64 = 1 << LAP_BITS;

#[inline]
fn encode(event: Event) -> (u64, u64) {
    let block = |kind: u64, block: Block| {
        let space = index(block.space).unwrap_or(0) as u64;
        (
            kind << (SIZE_BITS + SPACE_BITS) | space << SIZE_BITS | block.size.min(LARGEST),
            block.origin.pack(),
        )
    };
    let plain = |kind: u64, value: u64| (kind << (SIZE_BITS + SPACE_BITS), value);
    match event {
        Event::Allocated(it) => block(1, it),
        Event::Freed(it) => block(2, it),
        Event::Kept(it) => block(3, it),
        // The shape in the origin was not known before, so that the new shape can be stored there.
        Event::Shaped(it, shape) => block(4, Block { origin: Origin { shape, ..it.origin }, ..it }),
        Event::Refused(it) => block(6, it),
        Event::Iteration(iteration) => plain(5, iteration.into()),
        Event::End => plain(0, 0),
    }
}

fn decode(head: u64, origin: u64) -> Event {
    let block = Block {
        size: head & ((1 << SIZE_BITS) - 1),
        space: space((head >> SIZE_BITS & 0xFF) as usize),
        origin: Origin::unpack(origin),
    };
    match head >> (SIZE_BITS + SPACE_BITS) {
        1 => Event::Allocated(block),
        2 => Event::Freed(block),
        3 => Event::Kept(block),
        4 => {
            let Origin { shape, .. } = block.origin;
            Event::Shaped(Block { origin: Origin { shape: 0, ..block.origin }, ..block }, shape)
        }
        5 => Event::Iteration(origin as u32),
        6 => Event::Refused(block),
        _ => Event::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memcheck_limits::space::Space;

    #[test]
    fn a_lap_differs_from_the_one_before_and_from_an_empty_slot() {
        assert_ne!(lap(0), 0);
        for number in (0..40).map(|laps| laps * CAPACITY + 17) {
            assert_ne!(lap(number), lap(number + CAPACITY));
            assert_eq!(lap(number), lap(number / CAPACITY * CAPACITY));
        }
    }

    #[test]
    fn an_event_survives_encoding_and_decoding() {
        let origin = Origin { birth: 12, context: 70_000, shape: 9 };
        let block = Block { size: 141 << 30, space: Space::Cuda(3), origin };
        for event in [
            Event::Allocated(block),
            Event::Freed(Block { space: Space::Host, ..block }),
            Event::Kept(block),
            Event::Refused(block),
            Event::Shaped(Block { origin: Origin { shape: 0, ..origin }, ..block }, u16::MAX),
            Event::Iteration(u32::MAX),
            Event::End,
        ] {
            let (head, origin) = encode(event);
            assert!(head < 1 << (u64::BITS - LAP_BITS));
            assert_eq!(decode(head, origin), event);
        }
        for size in [1 << 48, 1 << 56, u64::MAX] {
            let (head, origin) = encode(Event::Refused(Block { size, ..block }));
            assert_eq!(decode(head, origin), Event::Refused(Block { size: LARGEST, ..block }));
        }
    }

    #[test]
    fn events_of_waiting_threads_are_complete_and_in_order() {
        const EACH: u64 = CAPACITY;
        const THREADS: u64 = 3;
        map().unwrap();
        let space = Space::Cuda(0);
        let block = |size| Block { size, space, origin: Origin::default() };
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    for i in 0..EACH {
                        push(Event::Allocated(block(thread << 32 | i)));
                    }
                });
            }
            let mut next = [0; THREADS as usize];
            let mut number = 0;
            while number < THREADS * EACH {
                let Some(event) = take(number) else {
                    std::thread::yield_now();
                    continue;
                };
                number += 1;
                let Event::Allocated(Block { size, .. }) = event else { panic!("{event:?}") };
                let expected = &mut next[(size >> 32) as usize];
                assert_eq!(size & 0xFFFF_FFFF, *expected);
                *expected += 1;
            }
            assert_eq!(take(number), None);
        });
    }
}
