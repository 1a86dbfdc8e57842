//! A bounded queue from many threads to one, without locks.
//!
//! Every slot carries a turn (as in Vyukov's bounded queue): `place` says that
//! it is free for the event with that number, `place + 1` that it holds it.
//! The number that a thread draws is the order of events.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::Event;
use crate::ledger::{self, Block, Origin};
use crate::mapping;

/// Events that fit: 8 MiB.
const CAPACITY: u64 = 1 << 18;
const WORDS: usize = 4;

/// Turn, kind and space and size, origin, extra.
static SLOTS: OnceLock<&'static [AtomicU64]> = OnceLock::new();
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Maps the queue, once.
///
/// # Errors
/// When the system refuses the memory.
pub(super) fn map() -> std::io::Result<()> {
    if SLOTS.get().is_none() {
        let words = mapping::slice::<AtomicU64>(CAPACITY as usize * WORDS)?;
        for place in 0..CAPACITY {
            words[place as usize * WORDS].store(place, Relaxed);
        }
        let _ = SLOTS.set(words);
    }
    Ok(())
}

fn slot(number: u64) -> Option<&'static [AtomicU64; WORDS]> {
    let at = (number % CAPACITY) as usize * WORDS;
    SLOTS.get()?.get(at..at + WORDS)?.try_into().ok()
}

pub(super) fn push(event: Event) {
    write(NEXT.fetch_add(1, Relaxed), event);
}

pub(super) fn push_pair(first: Event, second: Event) {
    let number = NEXT.fetch_add(2, Relaxed);
    write(number, first);
    write(number + 1, second);
}

fn write(number: u64, event: Event) {
    let Some(slot) = slot(number) else { return };
    let mut waited = 0u32;
    while slot[0].load(Acquire) != number {
        // Full: the collector is behind. It never waits for us.
        waited += 1;
        if waited < 64 {
            std::hint::spin_loop();
        } else if super::FORKED.load(Relaxed) {
            // Nobody will ever make room.
            return;
        } else {
            std::thread::yield_now();
        }
    }
    let (head, origin, extra) = encode(event);
    slot[1].store(head, Relaxed);
    slot[2].store(origin, Relaxed);
    slot[3].store(extra, Relaxed);
    slot[0].store(number + 1, Release);
}

/// Takes the event with this number out, once it is there.
pub(super) fn take(number: u64) -> Option<Event> {
    let slot = slot(number)?;
    if slot[0].load(Acquire) != number + 1 {
        return None;
    }
    let event = decode(slot[1].load(Relaxed), slot[2].load(Relaxed), slot[3].load(Relaxed));
    slot[0].store(number + CAPACITY, Release);
    Some(event)
}

const SIZE_BITS: u32 = 48;
const SPACE_BITS: u32 = 8;

fn encode(event: Event) -> (u64, u64, u64) {
    let block = |kind: u64, block: Block, extra: u64| {
        let space = ledger::index(block.space).unwrap_or(0) as u64;
        let head = kind << (SIZE_BITS + SPACE_BITS) | space << SIZE_BITS | block.size;
        (head, block.origin.pack(), extra)
    };
    let plain = |kind: u64, extra: u64| (kind << (SIZE_BITS + SPACE_BITS), 0, extra);
    match event {
        Event::Allocated(it) => block(1, it, 0),
        Event::Freed(it) => block(2, it, 0),
        Event::Kept(it) => block(3, it, 0),
        Event::Shaped(it, shape) => block(4, it, shape.into()),
        Event::Iteration(iteration) => plain(5, iteration.into()),
        Event::End => plain(0, 0),
    }
}

fn decode(head: u64, origin: u64, extra: u64) -> Event {
    let block = Block {
        size: head & ((1 << SIZE_BITS) - 1),
        space: ledger::space((head >> SIZE_BITS & 0xFF) as usize),
        origin: Origin::unpack(origin),
    };
    match head >> (SIZE_BITS + SPACE_BITS) {
        1 => Event::Allocated(block),
        2 => Event::Freed(block),
        3 => Event::Kept(block),
        4 => Event::Shaped(block, extra as u16),
        5 => Event::Iteration(extra as u32),
        _ => Event::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memcheck_core::space::Space;

    #[test]
    fn events_come_out_as_they_went_in() {
        let origin = Origin { birth: 12, context: 70_000, shape: 9 };
        let block = Block { size: 141 << 30, space: Space::Cuda(3), origin };
        for event in [
            Event::Allocated(block),
            Event::Freed(Block { space: Space::Host, ..block }),
            Event::Kept(block),
            Event::Shaped(block, u16::MAX),
            Event::Iteration(u32::MAX),
            Event::End,
        ] {
            let (head, origin, extra) = encode(event);
            assert_eq!(decode(head, origin, extra), event);
        }
    }
}
