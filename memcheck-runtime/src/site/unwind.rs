//! Walking the stack of the calling thread.
//!
//! framehop knows the frames by the unwind tables, without frame pointers. It
//! walks only what is new: from one allocation to the next most of a stack
//! stays as it is. The last stack of a thread is remembered with the place of
//! every return address; where the walk comes to a frame of it, and all return
//! addresses from there outwards still stand where they stood, the rest is the
//! same. (Each frame's place follows from the return address before it, so
//! equal words in equal places are the same calls.)

use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::AcqRel};

use framehop::{FrameAddress, MustNotAllocateDuringUnwind, Unwinder};
use memcheck_core::quiet;

use super::contexts;
use super::modules::{self, Bytes};
use crate::intern::mix;
use crate::scope;

#[cfg(target_arch = "x86_64")]
mod arch {
    use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};

    pub(super) type Unwinder<D, P> = UnwinderX86_64<D, P>;
    pub(super) type Cache<P> = CacheX86_64<P>;
    pub(super) type Registers = UnwindRegsX86_64;

    /// Where the caller is: instruction, registers.
    #[inline(always)]
    pub(super) fn registers() -> (u64, Registers) {
        let (ip, sp, bp): (u64, u64, u64);
        // SAFETY: reads three registers.
        unsafe {
            std::arch::asm!(
                "lea {ip}, [rip]", "mov {sp}, rsp", "mov {bp}, rbp",
                ip = out(reg) ip, sp = out(reg) sp, bp = out(reg) bp,
                options(nomem, nostack, preserves_flags),
            );
        }
        (ip, Registers::new(ip, sp, bp))
    }

    /// Stack and frame pointer.
    pub(super) fn pointers(registers: &Registers) -> (u64, u64) {
        (registers.sp(), registers.bp())
    }

    /// Where the return address of the frame below `sp` stands.
    pub(super) const RETURN_ADDRESS: Option<u64> = Some(8);
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};

    pub(super) type Unwinder<D, P> = UnwinderAarch64<D, P>;
    pub(super) type Cache<P> = CacheAarch64<P>;
    pub(super) type Registers = UnwindRegsAarch64;

    /// Where the caller is: instruction, registers.
    #[inline(always)]
    pub(super) fn registers() -> (u64, Registers) {
        let (ip, sp, fp, lr): (u64, u64, u64, u64);
        // SAFETY: reads four registers.
        unsafe {
            std::arch::asm!(
                "adr {ip}, .", "mov {sp}, sp", "mov {fp}, x29", "mov {lr}, x30",
                ip = out(reg) ip, sp = out(reg) sp, fp = out(reg) fp, lr = out(reg) lr,
                options(nomem, nostack, preserves_flags),
            );
        }
        (ip, Registers::new(lr, sp, fp))
    }

    /// Stack and frame pointer.
    pub(super) fn pointers(registers: &Registers) -> (u64, u64) {
        (registers.sp(), registers.fp())
    }

    /// Return addresses stand in no fixed place: every stack is walked whole.
    pub(super) const RETURN_ADDRESS: Option<u64> = None;
}

type Policy = MustNotAllocateDuringUnwind;

/// Frames that are kept; of deeper stacks the outermost are left out.
const DEPTH: usize = 160;

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

/// What one thread remembers.
struct Walker {
    cache: arch::Cache<Policy>,
    /// Frames of the last stack, the outermost first.
    frames: [u64; DEPTH],
    places: [Place; DEPTH],
    /// Hash of the frames up to and with each.
    hashes: [u64; DEPTH],
    length: usize,
}

/// The registers behind a return.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Place {
    sp: u64,
    bp: u64,
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
            if spare
                .compare_exchange(
                    std::ptr::null_mut(),
                    walker,
                    AcqRel,
                    std::sync::atomic::Ordering::Relaxed,
                )
                .is_ok()
            {
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
    for spare in &SPARES {
        let walker = spare.swap(std::ptr::null_mut(), AcqRel);
        if !walker.is_null() {
            return walker;
        }
    }
    let _quiet = quiet::enter();
    Box::into_raw(Box::new(Walker {
        cache: arch::Cache::new_in(),
        frames: [0; DEPTH],
        places: [Place::default(); DEPTH],
        hashes: [0; DEPTH],
        length: 0,
    }))
}

/// The context of the caller, by number.
#[inline(never)]
pub(super) fn here() -> u32 {
    let Some(unwinder) = UNWINDER.get() else { return 0 };
    // An ended thread has no walker, and its last frees need none.
    let walker = MINE.try_with(|mine| {
        // Taken for the time of the walk: a signal handler that allocates
        // meanwhile gets one of its own.
        let walker = mine.0.replace(std::ptr::null_mut());
        if walker.is_null() { claim() } else { walker }
    });
    let Ok(walker) = walker else { return 0 };
    let (ip, registers) = arch::registers();
    // SAFETY: this thread has just taken it, so it is nobody else's.
    let number = unsafe { &mut *walker }.walk(unwinder, ip, registers);
    let _ = MINE.try_with(|mine| mine.0.set(walker));
    number
}

impl Walker {
    fn walk(
        &mut self,
        unwinder: &arch::Unwinder<Bytes, Policy>,
        ip: u64,
        mut registers: arch::Registers,
    ) -> u32 {
        let (lowest, _) = arch::pointers(&registers);
        let mut read = |address: u64| match address {
            _ if address >= lowest && address & 7 == 0 => {
                // SAFETY: unwind tables lead from frame to frame of this thread's
                // own stack, which is mapped from the stack pointer upwards.
                Ok(unsafe { (address as *const u64).read() })
            }
            _ => Err(()),
        };
        let mut new: [(u64, Place); DEPTH] = [(0, Place::default()); DEPTH];
        let mut count = 0;
        let mut known = self.length;
        let mut kept = 0;
        let mut at = FrameAddress::from_instruction_pointer(ip);
        while count < DEPTH
            && let Ok(Some(frame)) =
                unwinder.unwind_frame(at, &mut registers, &mut self.cache, &mut read)
            && let Some(address) = NonZeroU64::new(frame)
        {
            let (sp, bp) = arch::pointers(&registers);
            let place = Place { sp, bp };
            while known > 0 && self.places[known - 1].sp < sp {
                known -= 1;
            }
            if known > 0
                && self.places[known - 1] == place
                && self.frames[known - 1] == frame
                && self.stands(known - 1)
            {
                kept = known;
                break;
            }
            new[count] = (frame, place);
            count += 1;
            at = FrameAddress::ReturnAddress(address);
        }
        self.keep(kept, &new[..count]);
        let hash = self.length.checked_sub(1).map_or(0, |last| self.hashes[last]);
        contexts::number(&self.frames[..self.length], hash, scope::current())
    }

    /// Whether the outermost `count` return addresses stand where they stood.
    fn stands(&self, count: usize) -> bool {
        let Some(below) = arch::RETURN_ADDRESS else { return false };
        self.frames[..count].iter().zip(&self.places[..count]).all(|(&frame, place)| {
            // SAFETY: the places lie further out on this thread's stack than a
            // frame that the walk has just come to.
            unsafe { ((place.sp - below) as *const u64).read() == frame }
        })
    }

    /// The stack is now its outermost `kept` frames and `new`, innermost first.
    fn keep(&mut self, kept: usize, new: &[(u64, Place)]) {
        let new = &new[..new.len().min(DEPTH - kept)];
        let mut hash = kept.checked_sub(1).map_or(0, |last| self.hashes[last]);
        for (at, &(frame, place)) in (kept..).zip(new.iter().rev()) {
            hash = mix(hash, frame);
            self.frames[at] = frame;
            self.places[at] = place;
            self.hashes[at] = hash;
        }
        self.length = kept + new.len();
    }
}
