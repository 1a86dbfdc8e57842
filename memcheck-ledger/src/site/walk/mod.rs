//! Walks the stack of the calling thread.
//!
//! framehop finds the frames with the unwind tables, without frame pointers. Parts of a stack that
//! the thread has walked before are not walked again (`stacks`).

mod arch;
pub(super) mod interrupted;
mod stacks;

use std::cell::Cell;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicPtr,
    Ordering::{AcqRel, Relaxed},
};

use framehop::{FrameAddress, MustNotAllocateDuringUnwind, Unwinder};
use memcheck_limits::quiet;

use self::arch::{CallPlace, WalkStart};
use self::stacks::{DEPTH, Stacks};
use super::contexts;
use crate::intern::mix;
use crate::os::{self, ModuleBytes};
use crate::scope;

type Policy = MustNotAllocateDuringUnwind;

static UNWINDER: OnceLock<arch::Unwinder<ModuleBytes, Policy>> = OnceLock::new();

pub(super) fn prepare() {
    UNWINDER.get_or_init(|| {
        let mut unwinder = arch::Unwinder::new();
        for module in os::loaded_modules() {
            unwinder.add_module(module);
        }
        unwinder
    });
}

/// The number of caches. A cache of framehop has room for 509 rules, each at a fixed position for
/// its address. A model's forward pass needs more, and a rule that is not in the cache is read from
/// the unwind tables again. PERF: each address uses one of several caches.
const CACHES: usize = 8;

fn cache_of(address: u64) -> usize {
    (mix(0, address) % CACHES as u64) as usize
}

/// The data that one thread needs for its walks.
struct Walker {
    caches: [arch::Cache<Policy>; CACHES],
    stacks: Box<Stacks>,
    /// Memory of the thread's stack; empty if the system does not report it.
    own: Range<u64>,
    /// The new frames of the current walk.
    new: [(u64, CallPlace); DEPTH],
}

/// Walkers of threads that have ended, for reuse by new threads.
const SPARE: usize = 64;
static SPARES: [AtomicPtr<Walker>; SPARE] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SPARE];

/// A thread's own walker, which is returned when the thread ends.
struct OwnWalker(Cell<*mut Walker>);

thread_local! {
    static OWN_WALKER: OwnWalker = const { OwnWalker(Cell::new(std::ptr::null_mut())) };
    /// True once the destructor of [`OWN_WALKER`] is registered.
    static IS_REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// Registers the destructor of the thread's walker. The C library allocates a block for it, which
/// would come back here if the C heap is counted.
#[cold]
fn register() {
    IS_REGISTERED.set(true);
    let _quiet = quiet::enter();
    let _ = OWN_WALKER.try_with(|_| ());
}

impl Drop for OwnWalker {
    fn drop(&mut self) {
        let walker = self.0.replace(std::ptr::null_mut());
        if walker.is_null() {
            return;
        }
        for spare in &SPARES {
            // Release, because the next owner must see all that this thread wrote into the walker.
            if spare.compare_exchange(std::ptr::null_mut(), walker, AcqRel, Relaxed).is_ok() {
                return;
            }
        }
        let _quiet = quiet::enter();
        // SAFETY: `claim` made the pointer with `Box::into_raw`, and only this thread has it.
        drop(unsafe { Box::from_raw(walker) });
    }
}

/// Returns a walker for a thread that has none. Called once for each thread.
#[cold]
fn claim() -> *mut Walker {
    let _quiet = quiet::enter();
    let own = own_stack().unwrap_or(0..0);
    for spare in &SPARES {
        let walker = spare.swap(std::ptr::null_mut(), AcqRel);
        // SAFETY: the swap took the walker out of the list, so only this thread has it.
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
        new: [(0, CallPlace::default()); DEPTH],
    }))
}

/// The memory of the calling thread's stack.
fn own_stack() -> Option<Range<u64>> {
    if COUNTS_C_HEAP.load(Relaxed) { os::stack_in_maps() } else { os::reported_stack() }
}

/// True if an allocation of the C library can lead here. The C library allocates while it looks up
/// a stack, and has locked the thread meanwhile, so that it must not be asked again.
static COUNTS_C_HEAP: AtomicBool = AtomicBool::new(false);

/// Must be called before blocks of the C heap are counted.
pub(super) fn prepare_for_c_heap() {
    COUNTS_C_HEAP.store(true, Relaxed);
}

/// Runs `work`. The frames around this call cannot change on this thread in the meantime.
#[inline(never)]
pub(super) fn with_fixed_frames<R>(work: impl FnOnce() -> R) -> R {
    struct Outside;
    impl Drop for Outside {
        fn drop(&mut self) {
            with_walker(|walker| walker.stacks.forget(0));
        }
    }
    let _outside = Outside;
    // The address of a local: frames of calls made from here are below it, and callers are above.
    let place = 0u8;
    let base = std::ptr::from_ref(std::hint::black_box(&place)) as u64;
    with_walker(|walker| walker.stacks.forget(base));
    work()
}

/// Passes the thread's walker to `with`. `None` if the thread has destroyed its walker because it
/// is ending; its last allocations and frees get no context.
#[inline]
fn with_walker<R>(with: impl FnOnce(&mut Walker) -> R) -> Option<R> {
    if !IS_REGISTERED.get() {
        register();
    }
    // The walker is taken out in the meantime, so that a signal handler that allocates gets another
    // one.
    let taken = OWN_WALKER.try_with(|own| {
        let walker = own.0.replace(std::ptr::null_mut());
        if walker.is_null() { claim() } else { walker }
    });
    let walker = taken.ok()?;
    // SAFETY: this thread has just taken the walker out, so no other reference to it exists.
    let result = with(unsafe { &mut *walker });
    let _ = OWN_WALKER.try_with(|own| own.0.set(walker));
    Some(result)
}

/// The number of the caller's context.
#[inline(never)]
pub(super) fn current_context() -> u32 {
    let Some(unwinder) = UNWINDER.get() else { return 0 };
    let start = arch::start();
    with_walker(|walker| walker.number(unwinder, start)).unwrap_or(0)
}

/// The return addresses of the caller's stack, the innermost first. Also if sites are not recorded,
/// for events that are rare.
#[inline(never)]
pub(super) fn frames() -> Vec<u64> {
    prepare();
    let Some(unwinder) = UNWINDER.get() else { return Vec::new() };
    let start = arch::start();
    with_walker(|walker| walker.frames(unwinder, start)).unwrap_or_default()
}

impl Walker {
    /// The return addresses of the stack that begins at `start`, the innermost first.
    fn frames(
        &mut self,
        unwinder: &arch::Unwinder<ModuleBytes, Policy>,
        start: WalkStart,
    ) -> Vec<u64> {
        let (kept, count) = self.walk(unwinder, start);
        let new = self.new[..count].iter().map(|&(frame, _)| frame);
        let (known, _) = self.stacks.last().frames();
        new.chain(known[..kept].iter().rev().copied()).collect()
    }

    /// The number of the context of the stack that begins at `start`.
    fn number(&mut self, unwinder: &arch::Unwinder<ModuleBytes, Policy>, start: WalkStart) -> u32 {
        let scope = scope::current();
        let key = self.stacks.key(start.sp, scope);
        if let Some(number) = self.stacks.find(key) {
            return number;
        }
        let (kept, count) = self.walk(unwinder, start);
        let new = &self.new[..count];
        let stack = self.stacks.add(key, (kept, new), &self.own);
        let (frames, hash) = stack.frames();
        let number = contexts::number(frames, hash, scope);
        stack.set_number(number)
    }

    /// Walks up to a frame of the last stack. Returns the number of the last stack's frames that
    /// are kept and the number of new frames.
    fn walk(
        &mut self,
        unwinder: &arch::Unwinder<ModuleBytes, Policy>,
        start: WalkStart,
    ) -> (usize, usize) {
        let lowest = start.sp;
        let mut registers = start.registers();
        let highest = if self.own.contains(&lowest) { self.own.end } else { u64::MAX };
        let reads = arch::Reads::default();
        let mut read = |address: u64| match address {
            _ if address >= lowest && address < highest && address & 7 == 0 => {
                // SAFETY: the unwind tables lead from frame to frame of this thread's own stack,
                // which is mapped from the stack pointer upwards, and the address is in that range.
                let word = unsafe { (address as *const u64).read() };
                reads.add(address, word);
                Ok(word)
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
            let place = CallPlace::new(&registers, &reads, frame);
            known = last.count_above(known, place.sp);
            if known > 0
                && last.has_frame(known - 1, frame, place)
                && self.stacks.is_last_unchanged(known)
            {
                return (known, count);
            }
            self.new[count] = (frame, place);
            count += 1;
            at = FrameAddress::ReturnAddress(address);
        }
        (0, count)
    }
}
