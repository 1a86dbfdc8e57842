//! Walking the stack of the calling thread.
//!
//! framehop knows the frames by the unwind tables, without frame pointers. What
//! the thread has walked before is not walked again (`stacks`).

use std::cell::Cell;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Relaxed},
};

use framehop::{FrameAddress, MustNotAllocateDuringUnwind, Unwinder};
use memcheck_core::quiet;

use super::arch::{self, Place, Start};
use super::contexts;
use super::modules::{self, Bytes};
use super::stacks::{DEPTH, Stacks};
use crate::intern::mix;
use crate::scope;

type Policy = MustNotAllocateDuringUnwind;

static UNWINDER: OnceLock<arch::Unwinder<Bytes, Policy>> = OnceLock::new();

/// Reads the unwind tables.
pub(super) fn prepare() {
    UNWINDER.get_or_init(|| {
        let mut unwinder = arch::Unwinder::new();
        for module in modules::loaded() {
            unwinder.add_module(module);
        }
        unwinder
    });
}

/// A cache of framehop holds 509 rules, each in the one place that its address
/// has there. A model's forward pass has more, and a rule that is not in the
/// cache is read from the unwind tables again. PERF: several caches, by address.
const CACHES: usize = 8;

/// The cache for the rule of an address.
fn cache_of(address: u64) -> usize {
    (mix(0, address) % CACHES as u64) as usize
}

/// What one thread has for its walks.
struct Walker {
    caches: [arch::Cache<Policy>; CACHES],
    stacks: Box<Stacks>,
    /// Memory of the thread's stack; empty where the system does not say.
    own: Range<u64>,
    /// Frames of a walk under way.
    new: [(u64, Place); DEPTH],
}

/// Walkers of threads that have ended, for those that come.
const SPARE: usize = 64;
static SPARES: [AtomicPtr<Walker>; SPARE] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SPARE];

/// A thread's own walker; given back when the thread ends.
struct Mine(Cell<*mut Walker>);

thread_local! {
    static MINE: Mine = const { Mine(Cell::new(std::ptr::null_mut())) };
}

impl Drop for Mine {
    fn drop(&mut self) {
        let walker = self.0.replace(std::ptr::null_mut());
        if walker.is_null() {
            return;
        }
        for spare in &SPARES {
            if spare.compare_exchange(std::ptr::null_mut(), walker, AcqRel, Relaxed).is_ok() {
                return;
            }
        }
        let _quiet = quiet::enter();
        // SAFETY: made by `Box::into_raw` below, and nobody else's.
        drop(unsafe { Box::from_raw(walker) });
    }
}

/// A walker for a thread that has none: once for each thread.
#[cold]
fn claim() -> *mut Walker {
    let _quiet = quiet::enter();
    let own = own_stack().unwrap_or(0..0);
    for spare in &SPARES {
        let walker = spare.swap(std::ptr::null_mut(), AcqRel);
        // SAFETY: whoever swaps it out has it alone.
        if let Some(known) = unsafe { walker.as_mut() } {
            known.stacks.forget(0);
            known.own = own;
            return walker;
        }
    }
    Box::into_raw(Box::new(Walker {
        caches: std::array::from_fn(|_| arch::Cache::new_in()),
        stacks: Stacks::new(),
        own,
        new: [(0, Place::default()); DEPTH],
    }))
}

/// Where the calling thread's stack lies.
fn own_stack() -> Option<Range<u64>> {
    // SAFETY: the attributes are filled in by the first call, read by the
    // second and given back by the third; every pointer is to a local.
    unsafe {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let (mut low, mut size) = (std::ptr::null_mut(), 0);
        let result = libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (result == 0).then(|| low as u64..low as u64 + size as u64)
    }
}

/// Runs `work`: meanwhile no frame around it comes or goes on this thread.
#[inline(never)]
pub(super) fn within<R>(work: impl FnOnce() -> R) -> R {
    struct Outside;
    impl Drop for Outside {
        fn drop(&mut self) {
            with_mine(|walker| walker.stacks.forget(0));
        }
    }
    let _outside = Outside;
    // A place in this frame: what this calls lies below it, what calls this above.
    let place = 0u8;
    let base = std::ptr::from_ref(std::hint::black_box(&place)) as u64;
    with_mine(|walker| walker.stacks.forget(base));
    work()
}

/// What `with` makes of the thread's walker. `None` on a thread that has ended,
/// whose last frees need none.
#[inline]
fn with_mine<R>(with: impl FnOnce(&mut Walker) -> R) -> Option<R> {
    // Taken for the time being: a signal handler that allocates meanwhile gets
    // one of its own.
    let taken = MINE.try_with(|mine| {
        let walker = mine.0.replace(std::ptr::null_mut());
        if walker.is_null() { claim() } else { walker }
    });
    let walker = taken.ok()?;
    // SAFETY: this thread has just taken it, so it is nobody else's.
    let result = with(unsafe { &mut *walker });
    let _ = MINE.try_with(|mine| mine.0.set(walker));
    Some(result)
}

/// The context of the caller, by number.
#[inline(never)]
pub(super) fn here() -> u32 {
    let Some(unwinder) = UNWINDER.get() else { return 0 };
    let start = arch::start();
    with_mine(|walker| walker.number(unwinder, start)).unwrap_or(0)
}

impl Walker {
    /// The context of a stack that begins here.
    fn number(&mut self, unwinder: &arch::Unwinder<Bytes, Policy>, start: Start) -> u32 {
        let scope = scope::current();
        let way = self.stacks.way(start.sp, scope);
        if let Some(number) = self.stacks.again(way) {
            return number;
        }
        let (kept, count) = self.walk(unwinder, start);
        let new = &self.new[..count];
        let stack = self.stacks.add(way, (kept, new), &self.own);
        let (frames, hash) = stack.frames();
        let number = contexts::number(frames, hash, scope);
        stack.number(number)
    }

    /// Walks until a frame of the last stack. How many of its frames stay, and
    /// how many are new.
    fn walk(&mut self, unwinder: &arch::Unwinder<Bytes, Policy>, start: Start) -> (usize, usize) {
        let lowest = start.sp;
        let mut registers = start.registers();
        let highest = if self.own.contains(&lowest) { self.own.end } else { u64::MAX };
        let mut read = |address: u64| match address {
            _ if address >= lowest && address < highest && address & 7 == 0 => {
                // SAFETY: unwind tables lead from frame to frame of this thread's
                // own stack, which is mapped from the stack pointer upwards.
                Ok(unsafe { (address as *const u64).read() })
            }
            _ => Err(()),
        };
        let last = self.stacks.last();
        let mut count = 0;
        let mut known = last.known();
        let mut at = FrameAddress::from_instruction_pointer(start.ip);
        while count < DEPTH
            && let cache = &mut self.caches[cache_of(at.address())]
            && let Ok(Some(frame)) = unwinder.unwind_frame(at, &mut registers, cache, &mut read)
            && let Some(address) = NonZeroU64::new(frame)
        {
            let place = arch::pointers(&registers);
            known = last.above(known, place.sp);
            if known > 0 && last.is(known - 1, frame, place) && self.stacks.last_stands(known) {
                return (known, count);
            }
            self.new[count] = (frame, place);
            count += 1;
            at = FrameAddress::ReturnAddress(address);
        }
        (0, count)
    }
}
