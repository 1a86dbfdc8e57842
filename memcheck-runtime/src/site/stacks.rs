//! The stacks that a thread has walked, so that its next walk is short or none.
//!
//! Two things make a walk short. From one allocation to the next most of a
//! stack stays as it is: where the walk comes to a frame of the thread's last
//! stack, and all return addresses from there outwards still stand where they
//! stood, the rest is the same. And a program that does the same again takes
//! the same ways: where the last walk that followed the last stack, and began
//! at this depth, still stands word for word, the walk is done before it began.
//!
//! Each frame's place follows from the return address before it, so equal words
//! in equal places are the same calls.

use std::ops::Range;

use super::arch::{self, Place};
use crate::intern::mix;
use crate::prefetch::{self, LINE};

/// Frames that are kept; of deeper stacks the outermost are left out.
pub(super) const DEPTH: usize = 160;
/// Stacks that a thread remembers: sets, of which each is tried as a whole.
const SETS: usize = 128;
const WAYS: usize = 4;
const STACKS: usize = SETS * WAYS;

/// A walked stack, the outermost frame first. PERF: in this order, so that what
/// is read in every walk lies together.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Stack {
    from: u64,
    length: usize,
    /// Its context, by number.
    number: u32,
    /// The place of the stack that followed it the last time.
    next: u32,
    /// No frame was left out, and every frame lies in the thread's own stack:
    /// it may be looked at again.
    whole: bool,
    /// Where each frame stands: words from where the walk began.
    words: [u32; DEPTH],
    frames: [u64; DEPTH],
    places: [Place; DEPTH],
    /// Hash of the frames up to and with each.
    hashes: [u64; DEPTH],
}

impl Stack {
    /// Return addresses, the outermost first, and the hash of all of them.
    pub(super) fn frames(&self) -> (&[u64], u64) {
        let hash = self.length.checked_sub(1).map_or(0, |last| self.hashes[last]);
        (&self.frames[..self.length], hash)
    }

    /// The place of a known frame.
    pub(super) fn is(&self, at: usize, frame: u64, place: Place) -> bool {
        self.places[at] == place && self.frames[at] == frame
    }

    /// Whether the outermost `count` return addresses stand where they stood.
    /// Those beyond `base` do.
    fn stands(&self, count: usize, base: u64) -> bool {
        let from = self.from as *const u64;
        let until = base.saturating_sub(self.from) / 8;
        // The innermost first: that is where stacks differ.
        let frames = self.frames[..count].iter().zip(&self.words[..count]).rev();
        frames.take_while(|&(_, &words)| u64::from(words) < until).all(|(&frame, &words)| {
            // SAFETY: `whole`, so it lies in this thread's own stack, and
            // further out than where a walk is now.
            unsafe { from.add(words as usize).read() == frame }
        })
    }

    /// It may be looked at soon. PERF: as much of its inner end as most walks
    /// compare.
    fn expect(&self) {
        const COMPARED: usize = 32;
        prefetch::to_read(std::ptr::from_ref(self));
        let inner = self.length.saturating_sub(COMPARED)..self.length;
        for frame in inner.clone().rev().step_by(LINE / size_of::<u64>()) {
            prefetch::to_read(&raw const self.frames[frame]);
        }
        for word in inner.rev().step_by(LINE / size_of::<u32>()) {
            prefetch::to_read(&raw const self.words[word]);
        }
    }

    /// Frames of which one may be met again.
    pub(super) fn known(&self) -> usize {
        if self.whole { self.length } else { 0 }
    }

    /// How many of the outermost `known` frames lie no further in than `sp`.
    pub(super) fn above(&self, known: usize, sp: u64) -> usize {
        let mut known = known;
        while known > 0 && self.places[known - 1].sp < sp {
            known -= 1;
        }
        known
    }

    /// Notes where the frames stand. `false` if one is not in the thread's `own`
    /// stack, or if that cannot be said.
    fn stand(&mut self, own: &Range<u64>) -> bool {
        let Some(below) = arch::RETURN_ADDRESS else { return false };
        self.words[..self.length].iter_mut().zip(&self.places).all(|(words, place)| {
            let bytes = place.sp.checked_sub(self.from + below);
            *words = bytes.and_then(|bytes| u32::try_from(bytes / 8).ok()).unwrap_or(0);
            bytes.is_some_and(|bytes| bytes % 8 == 0) && own.contains(&place.sp)
        })
    }

    /// Takes the outermost `kept` frames from `other`.
    fn copy(&mut self, other: &Self, kept: usize) {
        self.frames[..kept].copy_from_slice(&other.frames[..kept]);
        self.places[..kept].copy_from_slice(&other.places[..kept]);
        self.hashes[..kept].copy_from_slice(&other.hashes[..kept]);
    }

    /// The stack is now its outermost `kept` frames and `new`, the innermost
    /// first. Frames without room are left out at the outer end.
    fn extend(&mut self, kept: usize, new: &[(u64, Place)]) {
        let new = &new[..new.len().min(DEPTH)];
        let over = (kept + new.len()).saturating_sub(DEPTH);
        if over > 0 {
            self.frames.copy_within(over..kept, 0);
            self.places.copy_within(over..kept, 0);
        }
        let kept = kept - over;
        // Without its outermost frames every hash is another.
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

/// What one thread remembers. All zeroes is nothing.
#[derive(Debug)]
pub(super) struct Stacks {
    /// Of each stack, what it followed.
    tags: [Way; STACKS],
    all: [Stack; STACKS],
    last: usize,
    /// Stacks that were walked: which one of a set is replaced.
    count: usize,
    /// The thread stays below this place of its stack, where it is not zero: no
    /// frame beyond it comes or goes. PERF: around a test's body are as many
    /// frames as in it.
    base: u64,
}

/// How a walk is found again: the context before it, where it begins and in
/// which scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Way {
    before: u32,
    scope: u32,
    from: u64,
}

impl Way {
    /// The first place of its set.
    fn set(self) -> usize {
        let hash = mix(mix(mix(0, self.before.into()), self.from), self.scope.into());
        (hash >> 32) as usize % SETS * WAYS
    }
}

impl Stacks {
    /// A new thread's. Made in place: it is large, and mostly never touched.
    pub(super) fn new() -> Box<Self> {
        // SAFETY: it is made of integers and a `bool`, for which zero is a value.
        unsafe { Box::new_zeroed().assume_init() }
    }

    /// Forgets everything. From here on the thread stays below `base`, if it is
    /// not zero.
    pub(super) fn forget(&mut self, base: u64) {
        self.base = base;
        // PERF: by the tags, which lie together: most stacks were never touched.
        for (tag, stack) in self.tags.iter_mut().zip(&mut self.all) {
            if *tag != Way::default() {
                *tag = Way::default();
                (stack.length, stack.whole) = (0, false);
            }
        }
    }

    /// The thread's last stack.
    pub(super) fn last(&self) -> &Stack {
        &self.all[self.last]
    }

    /// Whether the outermost `count` frames of the last stack stand.
    pub(super) fn last_stands(&self, count: usize) -> bool {
        self.last().stands(count, self.base())
    }

    fn base(&self) -> u64 {
        if self.base == 0 { u64::MAX } else { self.base }
    }

    /// The way of a walk that begins here now.
    pub(super) fn way(&self, from: u64, scope: u32) -> Way {
        Way { before: self.last().number, scope, from }
    }

    /// The context of a walk that was made before on this way, where all of it
    /// still stands; then that is the last stack now.
    pub(super) fn again(&mut self, way: Way) -> Option<u32> {
        let stands = |at: usize| {
            self.tags[at] == way && {
                let known = self.all[at].known();
                known > 0 && self.all[at].stands(known, self.base())
            }
        };
        // PERF: a program that does the same again does it in the same order.
        let next = self.last().next as usize;
        let at = if stands(next) {
            next
        } else {
            let set = way.set();
            (set..set + WAYS).find(|&at| stands(at))?
        };
        self.follow(at);
        self.all[self.all[at].next as usize].expect();
        Some(self.all[at].number)
    }

    /// The stack at this place is the last one now.
    fn follow(&mut self, at: usize) {
        if let Some(last) = self.all.get_mut(self.last) {
            last.next = at as u32;
        }
        self.last = at;
    }

    /// The last stack is now the outermost `kept` frames of the one before and
    /// `new`, the innermost first; `own` is the memory of the thread's stack.
    pub(super) fn add(
        &mut self,
        way: Way,
        (kept, new): (usize, &[(u64, Place)]),
        own: &Range<u64>,
    ) -> &mut Stack {
        self.count = self.count.wrapping_add(1);
        let at = way.set() + self.count % WAYS;
        if let Ok([stack, last]) = self.all.get_disjoint_mut([at, self.last]) {
            stack.copy(last, kept);
        }
        self.follow(at);
        self.tags[at] = way;
        let stack = &mut self.all[at];
        stack.extend(kept, new);
        stack.from = way.from;
        stack.whole = kept + new.len() < DEPTH && own.contains(&way.from) && stack.stand(own);
        stack
    }
}

impl Stack {
    /// Notes the number of its context.
    pub(super) fn number(&mut self, number: u32) -> u32 {
        self.number = number;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames from `outer` inwards, at falling places.
    fn walked(frames: std::ops::Range<u64>) -> Vec<(u64, Place)> {
        frames.rev().map(|frame| (frame, Place { sp: 0x9000 - 8 * frame, bp: 0 })).collect()
    }

    const NOWHERE: Range<u64> = 0..0;

    fn way(from: u64) -> Way {
        Way { before: 0, scope: 0, from }
    }

    #[test]
    fn a_tail_that_is_kept_gives_the_same_stack_as_a_whole_walk() {
        let (mut kept, mut whole) = (Stacks::new(), Stacks::new());
        kept.add(way(1), (0, &walked(1..30)), &NOWHERE);
        let short = kept.add(way(2), (10, &walked(40..60)), &NOWHERE);
        let both: Vec<_> = walked(40..60).into_iter().chain(walked(1..11)).collect();
        let long = whole.add(way(2), (0, &both), &NOWHERE);
        assert_eq!(short.frames(), long.frames());
        assert_eq!(short.frames().0.len(), 30);
    }

    #[test]
    fn of_a_deep_stack_the_outermost_frames_are_left_out() {
        let mut stacks = Stacks::new();
        stacks.add(way(1), (0, &walked(1..151)), &(0..u64::MAX));
        let deep = stacks.add(way(1), (150, &walked(200..250)), &(0..u64::MAX));
        let expected: Vec<u64> = (41..151).chain(200..250).collect();
        assert_eq!(deep.frames().0, expected);
        assert_eq!(deep.known(), 0, "what is left out may be another's next time");
        let hash = deep.frames().1;
        let all: Vec<_> = walked(200..250).into_iter().chain(walked(41..151)).collect();
        assert_eq!(stacks.add(way(7), (0, &all), &NOWHERE).frames().1, hash);
    }

    #[test]
    fn what_lies_outside_the_threads_own_stack_is_not_looked_at_again() {
        let mut stacks = Stacks::new();
        let places = walked(1..5);
        assert_eq!(stacks.add(way(0x8000), (0, &places), &(0x8000..0x9000)).known(), 4);
        assert_eq!(stacks.add(way(0x8000), (0, &places), &(0x8000..0x8FF0)).known(), 0);
        stacks.add(way(0x8000), (0, &places), &(0x8000..0x9000));
        stacks.forget(0);
        assert_eq!(stacks.last().known(), 0);
    }

    #[test]
    fn frames_below_the_base_are_compared_and_those_beyond_it_are_not() {
        // A stack of our own: return addresses at the even words.
        let mut memory: Vec<u64> = (0..16).collect();
        let start = memory.as_ptr() as u64;
        let own = start..start + 128;
        let frame = |word: u64| (word, Place { sp: start + 8 * (word + 1), bp: 0 });
        let (from, new) = (way(start), [frame(2), frame(6), frame(12)]);
        let mut stacks = Stacks::new();
        stacks.add(from, (0, &new), &own).number(7);
        let next = Way { before: 7, ..from };
        stacks.add(next, (0, &new), &own).number(8);
        assert_eq!(stacks.again(Way { before: 7, ..from }), Some(8));
        memory[12] = 99;
        assert_eq!(stacks.again(next), None, "a caller is another");
        stacks.forget(start + 8 * 10);
        stacks.add(from, (0, &new), &own).number(7);
        assert_eq!(stacks.again(from), Some(7), "beyond the base");
        memory[6] = 99;
        assert_eq!(stacks.again(from), None);
    }
}
