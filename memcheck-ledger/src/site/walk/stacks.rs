//! The stacks that a thread has walked, so that its next walk is short or unnecessary.
//!
//! Two observations make walks short. First, most of a stack does not change between two
//! allocations. When a walk reaches a frame of the thread's last stack, and all return addresses
//! from there outwards are still at their positions, the rest of the stack is the same. Second,
//! programs repeat themselves. A walk is unnecessary if an earlier walk that followed the same last
//! stack and began at the same depth still matches memory word for word.
//!
//! The position of each frame follows from the return address before it, so equal words at equal
//! positions mean the same calls.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::ops::Range;

use super::arch::{self, CallPlace};
use crate::intern::mix;
use crate::prefetch::{self, LINE};

/// The number of frames that are stored. The outermost frames of deeper stacks are omitted.
pub(super) const DEPTH: usize = 160;
/// The stacks that a thread remembers are in sets. All stacks of a set are compared with a new
/// walk.
const SETS: usize = 128;
const STACKS_PER_SET: usize = 4;
const STACKS: usize = SETS * STACKS_PER_SET;

/// A walked stack, the outermost frame first. PERF: the fields are in this order so that the fields
/// that every walk reads are adjacent.
#[derive(Debug)]
#[repr(C)]
pub(super) struct RawStack {
    from: u64,
    length: usize,
    /// The number of its context.
    number: u32,
    /// The index of the stack that followed it the last time.
    next: u32,
    /// True if no frame was omitted and all frames are in the thread's own stack, so that their
    /// return addresses can be compared again.
    whole: bool,
    /// The position of each return address, in words from the start of the walk.
    words: [u32; DEPTH],
    frames: [u64; DEPTH],
    places: [CallPlace; DEPTH],
    /// For each frame, the hash of all frames up to and including it.
    hashes: [u64; DEPTH],
}

impl RawStack {
    /// Return addresses, the outermost first, and the hash of all of them.
    pub(super) fn frames(&self) -> (&[u64], u64) {
        let hash = self.length.checked_sub(1).map_or(0, |last| self.hashes[last]);
        (&self.frames[..self.length], hash)
    }

    /// True if the frame at index `at` is this frame at this place.
    pub(super) fn has_frame(&self, at: usize, frame: u64, place: CallPlace) -> bool {
        self.places[at] == place && self.frames[at] == frame
    }

    /// True if the outermost `count` return addresses are still at their positions. Those beyond
    /// `base` are not read, because they cannot have changed.
    fn is_unchanged(&self, count: usize, base: u64) -> bool {
        let from = self.from as *const u64;
        let until = base.saturating_sub(self.from) / 8;
        // The innermost first, because stacks mostly differ there. PERF: a plain loop, because
        // tests are mostly built without optimization, in which iterators call many functions.
        let mut at = count;
        while at > 0 {
            at -= 1;
            let words = self.words[at];
            if u64::from(words) >= until {
                return true;
            }
            // SAFETY: the stack is `whole`, so the word is in this thread's own stack, and it is
            // not further in than the walk that compares it.
            let word = unsafe { *from.add(words as usize) };
            if arch::code_address(word) != self.frames[at] {
                return false;
            }
        }
        true
    }

    /// Prefetches the stack for a comparison. PERF: only the part of its inner end that most walks
    /// compare.
    fn prefetch(&self) {
        const COMPARED: usize = 32;
        prefetch::to_read(std::ptr::from_ref(self));
        let outermost = self.length.saturating_sub(COMPARED);
        let mut at = self.length;
        while at > outermost {
            at -= 1;
            prefetch::to_read(&raw const self.frames[at]);
            prefetch::to_read(&raw const self.words[at]);
            at = at.saturating_sub(LINE / size_of::<u64>() - 1);
        }
    }

    /// The number of frames at which a later walk can stop.
    pub(super) fn known(&self) -> usize {
        if self.whole { self.length } else { 0 }
    }

    /// The number of the outermost `known` frames whose stack pointer is at least `sp`.
    pub(super) fn count_above(&self, known: usize, sp: u64) -> usize {
        let mut known = known;
        while known > 0 && self.places[known - 1].sp < sp {
            known -= 1;
        }
        known
    }

    /// Stores the positions of the return addresses. `false` if one is not in the thread's `own`
    /// stack.
    fn store_positions(&mut self, own: &Range<u64>) -> bool {
        self.words[..self.length].iter_mut().zip(&self.places).all(|(words, place)| {
            let bytes = place.return_address().checked_sub(self.from);
            *words = bytes.and_then(|bytes| u32::try_from(bytes / 8).ok()).unwrap_or(0);
            bytes.is_some_and(|bytes| bytes % 8 == 0) && own.contains(&place.sp)
        })
    }

    /// Copies the outermost `kept` frames of `other`.
    fn copy(&mut self, other: &Self, kept: usize) {
        self.frames[..kept].copy_from_slice(&other.frames[..kept]);
        self.places[..kept].copy_from_slice(&other.places[..kept]);
        self.hashes[..kept].copy_from_slice(&other.hashes[..kept]);
    }

    /// Sets the stack to its outermost `kept` frames followed by `new`, which has the innermost
    /// frame first. If there is not enough room, the outermost frames are omitted.
    fn extend(&mut self, kept: usize, new: &[(u64, CallPlace)]) {
        let new = &new[..new.len().min(DEPTH)];
        let over = (kept + new.len()).saturating_sub(DEPTH);
        if over > 0 {
            self.frames.copy_within(over..kept, 0);
            self.places.copy_within(over..kept, 0);
        }
        let kept = kept - over;
        // All hashes change if the outermost frames are omitted.
        let unchanged = if over == 0 { kept } else { 0 };
        let new = new.iter().rev();
        for (at, &(frame, place)) in (kept..).zip(new.clone()) {
            self.frames[at] = frame;
            self.places[at] = place;
        }
        self.length = kept + new.len();
        let mut hash = unchanged.checked_sub(1).map_or(0, |last| self.hashes[last]);
        for at in unchanged..self.length {
            hash = mix(hash, self.frames[at]);
            self.hashes[at] = hash;
        }
    }
}

/// The stacks that one thread remembers. All bytes zero means none.
#[derive(Debug)]
pub(super) struct Stacks {
    /// The key of each stack.
    tags: [WalkKey; STACKS],
    all: [RawStack; STACKS],
    last: usize,
    /// The number of walked stacks. It selects the stack of a set that is replaced next.
    count: usize,
    /// If it is not zero, no frame beyond this address of the thread's stack can change. PERF:
    /// there are as many frames around a test's body as in it.
    base: u64,
}

/// The key of a walk: the context of the last stack, the scope, and the stack pointer at the start
/// of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WalkKey {
    before: u32,
    scope: u32,
    from: u64,
}

impl WalkKey {
    /// The index of the first stack of its set.
    fn set(self) -> usize {
        let hash = mix(mix(mix(0, self.before.into()), self.from), self.scope.into());
        (hash >> 32) as usize % SETS * STACKS_PER_SET
    }
}

impl Stacks {
    /// Allocated in place, because the value is large and most of it is never touched.
    pub(super) fn new() -> Box<Self> {
        let layout = Layout::new::<Self>();
        // SAFETY: the type has a size.
        let place = unsafe { alloc_zeroed(layout) };
        if place.is_null() {
            handle_alloc_error(layout)
        }
        // SAFETY: the place has the layout of the type, which consists of integers and `bool`s, for
        // which all bytes zero is a valid value.
        unsafe { Box::from_raw(place.cast()) }
    }

    /// Forgets all stacks. If `base` is not zero, frames beyond it cannot change from now on.
    pub(super) fn forget(&mut self, base: u64) {
        self.base = base;
        // PERF: checks the tags, which are adjacent, because most stacks were never touched.
        for (tag, stack) in self.tags.iter_mut().zip(&mut self.all) {
            if *tag != WalkKey::default() {
                *tag = WalkKey::default();
                (stack.length, stack.whole) = (0, false);
            }
        }
    }

    pub(super) fn last(&self) -> &RawStack {
        &self.all[self.last]
    }

    /// True if the outermost `count` return addresses of the last stack are still at their
    /// positions.
    pub(super) fn is_last_unchanged(&self, count: usize) -> bool {
        self.last().is_unchanged(count, self.base())
    }

    fn base(&self) -> u64 {
        if self.base == 0 { u64::MAX } else { self.base }
    }

    /// The key of a walk that begins here now.
    pub(super) fn key(&self, from: u64, scope: u32) -> WalkKey {
        WalkKey { before: self.last().number, scope, from }
    }

    /// The context of an earlier walk with this key, if its whole stack still matches memory. That
    /// stack then becomes the last one.
    pub(super) fn find(&mut self, key: WalkKey) -> Option<u32> {
        let is_current = |at: usize| {
            self.tags[at] == key && {
                let known = self.all[at].known();
                known > 0 && self.all[at].is_unchanged(known, self.base())
            }
        };
        // PERF: tried first, because a program that repeats itself repeats the order of its calls.
        let next = self.last().next as usize;
        let at = if is_current(next) {
            next
        } else {
            let set = key.set();
            (set..set + STACKS_PER_SET).find(|&at| is_current(at))?
        };
        self.make_last(at);
        self.all[self.all[at].next as usize].prefetch();
        Some(self.all[at].number)
    }

    fn make_last(&mut self, at: usize) {
        if let Some(last) = self.all.get_mut(self.last) {
            last.next = at as u32;
        }
        self.last = at;
    }

    /// Adds a stack and makes it the last one. It consists of the outermost `kept` frames of the
    /// previous last stack and of `new`, the innermost first. `own` is the memory of the thread's
    /// stack.
    pub(super) fn add(
        &mut self,
        key: WalkKey,
        (kept, new): (usize, &[(u64, CallPlace)]),
        own: &Range<u64>,
    ) -> &mut RawStack {
        self.count = self.count.wrapping_add(1);
        let at = key.set() + self.count % STACKS_PER_SET;
        // Before `make_last`, which forgets the stack that has the kept frames.
        if let Ok([stack, last]) = self.all.get_disjoint_mut([at, self.last]) {
            stack.copy(last, kept);
        }
        self.make_last(at);
        self.tags[at] = key;
        let stack = &mut self.all[at];
        stack.extend(kept, new);
        stack.from = key.from;
        stack.whole =
            kept + new.len() < DEPTH && own.contains(&key.from) && stack.store_positions(own);
        stack
    }
}

impl RawStack {
    pub(super) fn set_number(&mut self, number: u32) -> u32 {
        self.number = number;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The given frames, the innermost first, at descending addresses.
    fn walked(frames: std::ops::Range<u64>) -> Vec<(u64, CallPlace)> {
        frames.rev().map(|frame| (frame, CallPlace::at(0x9000 - 8 * frame))).collect()
    }

    const NOWHERE: Range<u64> = 0..0;

    fn key(from: u64) -> WalkKey {
        WalkKey { before: 0, scope: 0, from }
    }

    #[test]
    fn a_walk_with_a_kept_tail_gives_the_same_stack_as_a_whole_walk() {
        let (mut kept, mut whole) = (Stacks::new(), Stacks::new());
        kept.add(key(1), (0, &walked(1..30)), &NOWHERE);
        let short = kept.add(key(2), (10, &walked(40..60)), &NOWHERE);
        let both: Vec<_> = walked(40..60).into_iter().chain(walked(1..11)).collect();
        let long = whole.add(key(2), (0, &both), &NOWHERE);
        assert_eq!(short.frames(), long.frames());
        assert_eq!(short.frames().0.len(), 30);
    }

    #[test]
    fn the_outermost_frames_of_a_deep_stack_are_omitted() {
        let mut stacks = Stacks::new();
        stacks.add(key(1), (0, &walked(1..151)), &(0..u64::MAX));
        let deep = stacks.add(key(1), (150, &walked(200..250)), &(0..u64::MAX));
        let expected: Vec<u64> = (41..151).chain(200..250).collect();
        assert_eq!(deep.frames().0, expected);
        assert_eq!(deep.known(), 0, "omitted frames cannot be compared again");
        let hash = deep.frames().1;
        let all: Vec<_> = walked(200..250).into_iter().chain(walked(41..151)).collect();
        assert_eq!(stacks.add(key(7), (0, &all), &NOWHERE).frames().1, hash);
    }

    #[test]
    fn frames_outside_the_threads_own_stack_are_not_compared_again() {
        let mut stacks = Stacks::new();
        let places = walked(1..5);
        assert_eq!(stacks.add(key(0x8000), (0, &places), &(0x8000..0x9000)).known(), 4);
        assert_eq!(stacks.add(key(0x8000), (0, &places), &(0x8000..0x8FF0)).known(), 0);
        stacks.add(key(0x8000), (0, &places), &(0x8000..0x9000));
        stacks.forget(0);
        assert_eq!(stacks.last().known(), 0);
    }

    #[test]
    fn frames_below_the_base_are_compared_and_those_beyond_it_are_not() {
        // A simulated stack with return addresses at even words.
        let mut memory: Vec<u64> = (0..16).collect();
        let start = memory.as_ptr() as u64;
        let own = start..start + 128;
        let frame = |word: u64| (word, CallPlace::at(start + 8 * (word + 1)));
        let (from, new) = (key(start), [frame(2), frame(6), frame(12)]);
        let mut stacks = Stacks::new();
        stacks.add(from, (0, &new), &own).set_number(7);
        let next = WalkKey { before: 7, ..from };
        stacks.add(next, (0, &new), &own).set_number(8);
        assert_eq!(stacks.find(WalkKey { before: 7, ..from }), Some(8));
        memory[12] = 99;
        assert_eq!(stacks.find(next), None, "the caller has changed");
        stacks.forget(start + 8 * 10);
        stacks.add(from, (0, &new), &own).set_number(7);
        assert_eq!(stacks.find(from), Some(7), "the frame is beyond the base");
        memory[6] = 99;
        assert_eq!(stacks.find(from), None);
    }
}
