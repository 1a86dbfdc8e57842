//! Signals that end a process because of a mistake in it, and the one by which the parent asks for a
//! stack before it kills a test that takes too long. A handler stores the call stack of the thread, and
//! then lets the handler that was there before do its work: std's, which prints that a stack has
//! overflowed, one of the program, or the system's default, which ends the process.
//!
//! The handler calls only functions that are allowed in one: it takes no lock of the process,
//! allocates nothing and formats nothing. A handler that the program installs later replaces it.

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64};

use memcheck_core::wire::last_state::{FIRST_CALL, MOST_CALLS, STACK_SIGNAL, Word};
use memcheck_ledger::site::{self, Interrupted};

use crate::executable::Executable;
use crate::forked;

const SIGNALS: [c_int; 6] =
    [libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, STACK_SIGNAL];

const _: () = assert!(STACK_SIGNAL == libc::SIGURG);

/// Everything that the handler reads.
struct Followed {
    numbers: &'static [AtomicU64],
    executable: Executable,
    /// The reactions before, in the order of [`SIGNALS`]; `None` for a signal that is not followed.
    before: [Option<libc::sigaction>; SIGNALS.len()],
}

static FOLLOWED: OnceLock<Followed> = OnceLock::new();

/// True while a thread stores its stack. Another thread that gets a signal meanwhile stores none.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// The thread whose stack was stored last.
static LAST_THREAD: AtomicI32 = AtomicI32::new(0);

/// Starts to store the stack of each thread that gets such a signal, or is asked for its stack, into `numbers`, which have the
/// layout of [`memcheck_core::wire::last_state`]. The first call decides.
pub(crate) fn follow_signals(numbers: &'static [AtomicU64], executable: Executable) {
    site::prepare_for_signals();
    let before = SIGNALS.map(reaction);
    if FOLLOWED.set(Followed { numbers, executable, before }).is_err() {
        return;
    }
    for (signal, before) in SIGNALS.into_iter().zip(before) {
        let Some(mut ours) = before else { continue };
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_signal;
        ours.sa_sigaction = handler as usize;
        // std gives its threads a second stack, because the first can be the reason.
        ours.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
        if signal == STACK_SIGNAL {
            // A program without a handler of its own never sees an interrupted call.
            ours.sa_flags |= libc::SA_RESTART;
        }
        // SAFETY: the reaction is initialized, and its handler stays in memory. A null pointer asks
        // for no copy of the reaction before.
        unsafe { libc::sigaction(signal, &raw const ours, std::ptr::null_mut()) };
    }
}

/// The reaction to a signal now. `None` if it is ignored, and so does not end the process.
fn reaction(signal: c_int) -> Option<libc::sigaction> {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null pointer leaves the reaction as it is, and the call initializes `before` if it
    // succeeds.
    let before = unsafe {
        let result = libc::sigaction(signal, null(), before.as_mut_ptr());
        (result == 0).then(|| before.assume_init())
    };
    before.filter(|before| before.sa_sigaction != libc::SIG_IGN)
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the function returns the address of this thread's own number, and its value is restored
    // below for the interrupted code, which may go on.
    let errno = unsafe { *libc::__errno_location() };
    if let Some(followed) = FOLLOWED.get() {
        // The copy in a forked child has the numbers of its parent too.
        let is_of_test = !forked::is_child();
        let is_elsewhere =
            is_of_test && signal == STACK_SIGNAL && followed.is_passed_to_body(own_thread());
        if is_of_test && !is_elsewhere {
            // SAFETY: the kernel passes the context of the interrupted thread to such a handler.
            followed.store(signal, unsafe { &*context.cast::<libc::ucontext_t>() });
        }
        if !is_elsewhere {
            followed.pass_on(signal, info, context);
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

impl Followed {
    fn number(&self, word: Word) -> &AtomicU64 {
        &self.numbers[word as usize]
    }

    /// The system gives the signal to any thread. True if the thread of the body is another one, which
    /// gets it now.
    fn is_passed_to_body(&self, own: i32) -> bool {
        let body = self.number(Word::Thread).load(Acquire) as i32;
        // SAFETY: the calls take numbers. A thread that has ended gets no signal.
        body != own
            && unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), body, STACK_SIGNAL) } == 0
    }

    fn store(&self, signal: c_int, context: &libc::ucontext_t) {
        if IS_BUSY.swap(true, Acquire) {
            return;
        }
        let thread = own_thread();
        let mut walk = Walk { followed: self, thread: registers(context), count: 0 };
        // A handler of the former signal, such as std's, has ended the process. The stack of that
        // signal is the one that matters.
        let is_in_handler = is_on_second_stack(context, walk.thread.sp)
            && LAST_THREAD.load(Relaxed) == thread
            && self.number(Word::Signal).load(Relaxed) != 0;
        if !is_in_handler {
            self.number(Word::Signal).store(0, Release);
            // SAFETY: only one thread has set `IS_BUSY`, so that no other uses this stack.
            unsafe { on_stack(OWN_STACK.top(), store_calls, (&raw mut walk).cast()) };
            self.number(Word::Calls).store(walk.count as u64, Relaxed);
            LAST_THREAD.store(thread, Relaxed);
        }
        self.number(Word::Signal).store(signal as u64, Release);
        IS_BUSY.store(false, Release);
    }

    /// Does what would have been done without this handler.
    fn pass_on(&self, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        let at = SIGNALS.iter().position(|known| *known == signal);
        let Some(before) = at.and_then(|at| self.before[at].as_ref()) else { return };
        match before.sa_sigaction {
            libc::SIG_DFL if signal == STACK_SIGNAL => {}
            libc::SIG_DFL => {
                // The signal ends the process as soon as this handler has returned, also if another
                // process has sent it.
                // SAFETY: the reaction is initialized. The second call takes a number.
                unsafe {
                    libc::sigaction(signal, &raw const *before, std::ptr::null_mut());
                    libc::raise(signal);
                }
            }
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                // SAFETY: the flag says that the handler takes three arguments, which are those of
                // this one.
                unsafe {
                    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                        std::mem::transmute(handler);
                    handler(signal, info, context);
                }
            }
            handler => {
                // SAFETY: without the flag the handler takes the number alone.
                unsafe {
                    let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
                    handler(signal);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> Interrupted {
    let of = |register: c_int| context.uc_mcontext.gregs[register as usize] as u64;
    let [ip, sp, bp] = [libc::REG_RIP, libc::REG_RSP, libc::REG_RBP].map(of);
    Interrupted { ip, sp, bp, lr: 0 }
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> Interrupted {
    let machine = &context.uc_mcontext;
    Interrupted { ip: machine.pc, sp: machine.sp, bp: machine.regs[29], lr: machine.regs[30] }
}

/// The system's number of this thread.
fn own_thread() -> i32 {
    // SAFETY: the call has no arguments and reads no memory.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    thread as i32
}

/// The number of the thread that calls, as [`Word::Thread`] has it.
pub(crate) fn thread_number() -> u64 {
    own_thread() as u64
}

/// True if the interrupted code ran on the second stack of its thread, as handlers do.
fn is_on_second_stack(context: &libc::ucontext_t, sp: u64) -> bool {
    let start = context.uc_stack.ss_sp as u64;
    sp.checked_sub(start).is_some_and(|offset| offset < context.uc_stack.ss_size as u64)
}

/// A walk of the stack of a thread.
struct Walk<'a> {
    followed: &'a Followed,
    thread: Interrupted,
    /// The calls that were stored.
    count: usize,
}

extern "C" fn store_calls(walk: *mut c_void) {
    // SAFETY: `store` passes a pointer to its own value, which it does not use meanwhile.
    let Walk { followed, thread, count } = unsafe { &mut *walk.cast::<Walk<'_>>() };
    site::interrupted_calls(*thread, |address| {
        if *count < MOST_CALLS
            && let Some(call) = followed.executable.call(address)
        {
            followed.numbers[FIRST_CALL + *count].store(call, Relaxed);
            *count += 1;
        }
    });
}

/// The stack of the walk. The second stack of a thread has 8 KiB, of which the registers can take
/// most, and the evaluation of an unwind table needs more.
#[repr(align(16))]
struct OwnStack(UnsafeCell<[u8; OwnStack::BYTES]>);

// SAFETY: the thread that has set `IS_BUSY` is the only one that uses it.
unsafe impl Sync for OwnStack {}

static OWN_STACK: OwnStack = OwnStack(UnsafeCell::new([0; OwnStack::BYTES]));

impl OwnStack {
    const BYTES: usize = 128 << 10;

    fn top(&self) -> *mut u8 {
        self.0.get().cast::<u8>().wrapping_add(Self::BYTES)
    }
}

/// Calls `work` on another stack.
///
/// # Safety
/// `top` is aligned to 16 bytes, and the memory below it is large enough for `work` and used by this
/// thread only. `work` accepts `argument`.
unsafe fn on_stack(top: *mut u8, work: extern "C" fn(*mut c_void), argument: *mut c_void) {
    // SAFETY: the stack pointer is kept in a register that `work` preserves, and restored. `work`
    // does not unwind, because it is a function of C. The other registers that it changes are named.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "mov r12, rsp", "mov rsp, {top}", "call {work}", "mov rsp, r12",
            top = in(reg) top, work = in(reg) work, in("rdi") argument,
            out("r12") _, clobber_abi("C"),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!(
            "mov x20, sp", "mov sp, {top}", "blr {work}", "mov sp, x20",
            top = in(reg) top, work = in(reg) work, in("x0") argument,
            out("x20") _, clobber_abi("C"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_on_the_other_stack_and_returns() {
        extern "C" fn keep_place(place: *mut c_void) {
            let local = 0u8;
            // SAFETY: the test passes a pointer to a number.
            unsafe { *place.cast::<usize>() = (&raw const local) as usize };
        }
        let mut place = 0usize;
        assert!(!IS_BUSY.swap(true, Acquire));
        // SAFETY: this thread has set `IS_BUSY`, and the function stores one number.
        unsafe { on_stack(OWN_STACK.top(), keep_place, (&raw mut place).cast()) };
        IS_BUSY.store(false, Release);
        let top = OWN_STACK.top() as usize;
        assert!((top - OwnStack::BYTES..top).contains(&place));
    }

    #[test]
    fn a_place_on_the_second_stack_is_recognized() {
        // SAFETY: a context is numbers and pointers, for which zero is a value.
        let mut context: libc::ucontext_t = unsafe { std::mem::zeroed() };
        assert!(!is_on_second_stack(&context, 0) && !is_on_second_stack(&context, 5));
        context.uc_stack.ss_sp = 0x1000 as *mut c_void;
        context.uc_stack.ss_size = 0x100;
        let on = |sp| is_on_second_stack(&context, sp);
        assert!(on(0x1000) && on(0x10FF) && !on(0xFFF) && !on(0x1100));
    }
}
