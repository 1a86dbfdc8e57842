//! Walks the stack of a thread that a signal has interrupted, in the handler of the signal.
//!
//! The thread can hold any lock, also that of the allocator, and its stack can be damaged. The walk
//! therefore takes no lock, allocates nothing, and reads only the mapping that has the stack.

use std::num::NonZeroU64;
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Release},
};

use framehop::{FrameAddress, Unwinder};

use super::arch::{self, WalkStart};
use super::{Policy, UNWINDER};
use crate::os;
use crate::site::Interrupted;

/// The cache of the walks. A walk takes it, so that a second one at the same time finds none.
static CACHE: AtomicPtr<arch::Cache<Policy>> = AtomicPtr::new(null_mut());

/// The farthest that a stack pointer can be below its stack. A function that needs more than the rest
/// of the stack moves the pointer first, and touches the pages below after that.
const BELOW: u64 = 1 << 20;

pub(in crate::site) fn prepare() {
    super::prepare();
    let cache = Box::into_raw(Box::new(arch::Cache::new_in()));
    let before = CACHE.swap(cache, AcqRel);
    if !before.is_null() {
        // SAFETY: this function made the pointer with `Box::into_raw`, and the swap took it out.
        drop(unsafe { Box::from_raw(before) });
    }
}

pub(in crate::site) fn calls(thread: Interrupted, mut add: impl FnMut(u64)) {
    // A return address is behind its call.
    add(thread.ip.wrapping_add(1));
    let Some(unwinder) = UNWINDER.get() else { return };
    let Some(stack) = os::mapping_at(thread.sp, BELOW) else { return };
    let taken = CACHE.swap(null_mut(), AcqRel);
    // SAFETY: the swap took the cache out, so that only this thread has it.
    let Some(cache) = (unsafe { taken.as_mut() }) else { return };
    let lowest = stack.start.max(thread.sp);
    let last = stack.end.saturating_sub(8);
    let reads = arch::Reads::default();
    let mut read = |address: u64| match address {
        _ if (lowest..=last).contains(&address) && address & 7 == 0 => {
            // SAFETY: the word is in a readable mapping, which is the stack of this thread.
            let word = unsafe { (address as *const u64).read() };
            reads.add(address, word);
            Ok(word)
        }
        _ => Err(()),
    };
    let mut registers = WalkStart::of(thread).registers();
    let mut at = FrameAddress::from_instruction_pointer(thread.ip);
    while let Ok(Some(frame)) = unwinder.unwind_frame(at, &mut registers, cache, &mut read)
        && let Some(address) = NonZeroU64::new(frame)
    {
        add(frame);
        at = FrameAddress::ReturnAddress(address);
    }
    CACHE.store(taken, Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls of this thread from here on. Tests of one process share the cache.
    #[inline(never)]
    fn here() -> Vec<u64> {
        let start = arch::start();
        let mut found = Vec::new();
        calls(start.interrupted(), |call| found.push(call));
        found
    }

    #[test]
    fn the_stack_of_interrupted_code_is_that_of_an_ordinary_walk() {
        assert_eq!(
            {
                let mut none = Vec::new();
                calls(Interrupted { ip: 7, sp: 0, bp: 0, lr: 0 }, |call| none.push(call));
                none
            },
            [8],
            "a stack pointer without a stack has no callers"
        );
        prepare();
        prepare();
        let interrupted = here();
        let ordinary = super::super::frames();
        assert!(interrupted.len() > 3, "{interrupted:x?}");
        let same = interrupted.iter().rev().zip(ordinary.iter().rev());
        let same = same.take_while(|(one, other)| one == other).count();
        assert!(same + 3 >= interrupted.len(), "{interrupted:x?} {ordinary:x?}");
        assert_eq!(here().len(), interrupted.len(), "the cache is back");
        let taken = CACHE.swap(null_mut(), AcqRel);
        assert_eq!(here().len(), 1, "another thread walks");
        CACHE.store(taken, Release);
    }
}
