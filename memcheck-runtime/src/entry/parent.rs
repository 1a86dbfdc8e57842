//! The tie of a test's own process to the harness that started it: where that
//! is killed (by a time-out of nextest's, by Ctrl-C), the test ends with all
//! that it started.
//!
//! The process leads a group of its own, so that its parent can end all of it;
//! for the same reason a signal to the parent's group does not reach it. The
//! kernel tells it instead, by a signal that nobody else uses. A thread waits
//! for that one and kills the group: a handler would have to be unsafe code.
//!
//! ```text
//! before main       tie     the signal is blocked in every thread to come, and asked for
//! test starts       watch   the thread: a signal that came before is still there
//! ```
//!
//! Children of `cargo memcheck` are not tied: it stands by them until they end.
//!
//! The calls go to libc directly. The nix crate switches on a feature of libc,
//! and with it every user of this crate would build candle once more.

use std::mem::MaybeUninit;

use crate::aside;

/// The kernel sends it when the parent's thread that forked has ended: that
/// one waits for us. No hardware has it any more, and no library takes it.
const PARENT_ENDED: i32 = libc::SIGSTKFLT;

fn signals() -> libc::sigset_t {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` writes the whole set; both calls are passed a valid
    // pointer to it, and `PARENT_ENDED` is a signal, so neither can fail.
    unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        libc::sigaddset(signals.as_mut_ptr(), PARENT_ENDED);
        signals.assume_init()
    }
}

/// Asks the kernel to tell when `parent` ends. On the main thread: with a thread
/// that ended the kernel would forget it.
pub(super) fn tie(parent: u32) {
    // SAFETY: the set is a valid one, and the old mask is not asked for.
    let blocked =
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &signals(), std::ptr::null_mut()) };
    // SAFETY: this option takes a signal number and changes no memory.
    let asked = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, PARENT_ENDED as libc::c_ulong) };
    if blocked != 0 || asked != 0 {
        eprintln!("memcheck: this process may outlive the one that started it");
    }
    if std::os::unix::process::parent_id() != parent {
        // It ended before it could be asked about.
        end();
    }
}

/// Waits, aside, for what [`tie`] has asked for.
pub(super) fn watch() {
    let watching = aside::spawn("memcheck parent", || {
        let mut signal = 0;
        // SAFETY: both pointers are to values that live during the call.
        if unsafe { libc::sigwait(&signals(), &mut signal) } == 0 && signal == PARENT_ENDED {
            end();
        }
    });
    if let Err(error) = watching {
        eprintln!("memcheck: this process may outlive the one that started it: {error}");
    }
}

/// Ends this process, and its group where that is its own.
fn end() -> ! {
    // SAFETY: the call takes nothing and cannot fail.
    let group = unsafe { libc::getpgrp() };
    if u32::try_from(group) == Ok(std::process::id()) {
        kill_group(group);
    }
    std::process::abort()
}

/// Kills every process of a group that is still there.
pub(super) fn kill_group(group: i32) {
    // SAFETY: a signal to other processes, which touches no memory of this one.
    // It fails if the group is gone already, which is the aim.
    unsafe { libc::killpg(group, libc::SIGKILL) };
}
