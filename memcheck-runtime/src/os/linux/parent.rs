//! Ties a test's own process to its supervisor, and the supervisor to the harness that started it.
//! If the harness is killed (by a time-out of nextest or by Ctrl-C), the test ends with all
//! processes that it started.
//!
//! Each of the two leads a process group, so that its parent can end the whole group. For the same
//! reason a signal to the parent's group does not reach it. The kernel therefore sends it a signal
//! that is otherwise unused when the parent ends. A thread of the test waits for that signal and
//! kills the group, because a signal handler would have to be unsafe code.
//!
//! ```text
//! before main    request_signal     blocks the signal in every later thread, and requests it
//! test starts    wait_for_signal    starts the thread; an earlier signal is still pending
//! ```
//!
//! Children of `cargo memcheck` are not tied, because the command waits until they have ended.
//!
//! This file calls libc directly, because the nix crate enables a feature of libc. Every user of
//! this crate would have to build candle once more for that feature.

use std::mem::MaybeUninit;
use std::time::Duration;

use crate::quiet_thread;

/// The kernel sends this signal when the parent's thread that forked has ended, which is the thread
/// that waits for this process. No hardware raises the signal any more, and no library uses it.
pub(super) const PARENT_ENDED: i32 = libc::SIGSTKFLT;

/// Blocks signals in this thread and in every later one, so that [`wait_for`] receives them.
pub(super) fn block(numbers: &[i32]) -> libc::sigset_t {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initializes the whole set before `assume_init`. All calls get a valid
    // pointer to it, and callers pass valid signal numbers, so that none can fail. A null pointer
    // for the old mask is allowed.
    unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        for &number in numbers {
            libc::sigaddset(signals.as_mut_ptr(), number);
        }
        let signals = signals.assume_init();
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
        signals
    }
}

/// A signal that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// The parent asks for the end of the test, and reads its report.
    Asked,
    /// The parent has ended.
    ParentEnded,
    /// Another one.
    Other,
}

/// Waits for one of the signals.
pub(super) fn wait_for(signals: &libc::sigset_t) -> Signal {
    let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
    loop {
        // SAFETY: both pointers are to values that live during the call, which only writes to `info`.
        let number = unsafe { libc::sigwaitinfo(signals, info.as_mut_ptr()) };
        if number == -1 {
            continue;
        }
        if number != PARENT_ENDED {
            return Signal::Other;
        }
        // SAFETY: the call has succeeded, so that it has written `info`.
        let code = unsafe { info.assume_init() }.si_code;
        // The id of the parent does not tell the two apart: the kernel sends the signal when the
        // thread that forked has ended, and the other threads of the parent can still run then.
        return if code == libc::SI_QUEUE { Signal::Asked } else { Signal::ParentEnded };
    }
}

/// Asks the kernel to send [`PARENT_ENDED`] when `parent` ends. Must be called on the main thread,
/// because the kernel drops the request when the thread that made it ends.
pub(super) fn request_signal(parent: u32) {
    block(&[PARENT_ENDED]);
    // SAFETY: this option takes a signal number and does not access memory.
    let asked = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, PARENT_ENDED as libc::c_ulong) };
    if asked != 0 {
        eprintln!("memcheck: this test process may outlive the test harness");
    }
    if std::os::unix::process::parent_id() != parent {
        // The parent ended before the request was made, so the kernel will not send the signal.
        kill_own_group();
    }
}

/// Waits on another thread for the signal that [`request_signal`] has requested.
pub(crate) fn wait_for_signal() {
    let watching = quiet_thread::spawn("memcheck parent", || {
        wait_for(&block(&[PARENT_ENDED]));
        kill_own_group();
    });
    if let Err(error) = watching {
        eprintln!("memcheck: this test process may outlive the test harness: {error}");
    }
}

/// Ends this process, and its group if it leads one.
fn kill_own_group() -> ! {
    // SAFETY: the call takes no arguments and cannot fail.
    let group = unsafe { libc::getpgrp() };
    if u32::try_from(group) == Ok(std::process::id()) {
        kill_group(group);
    }
    std::process::abort()
}

/// Undoes an ignored SIGCHLD that a daemon or a shell (`trap "" CHLD`) has passed on. The kernel
/// would reap the children of this process and of the supervisor, whose exit status would be lost.
pub(super) fn keep_ended_children() {
    let mut reaction = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null pointer leaves the reaction as it is, and `reaction` is a valid pointer for
    // the call, which initializes it if it succeeds. The second call takes numbers.
    unsafe {
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), reaction.as_mut_ptr()) == 0
            && reaction.assume_init().sa_sigaction == libc::SIG_IGN
        {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
}

/// True if the child has ended after `patience` at the latest. The child stays unreaped, so that
/// its number still belongs to it.
pub(super) fn ends_within(child: u32, patience: Duration) -> bool {
    let (sender, ended) = std::sync::mpsc::channel();
    // The thread ends with the child, which the caller kills after its time-out.
    let waiting = quiet_thread::spawn("memcheck child", move || {
        let mut info = MaybeUninit::uninit();
        let (child, options) = (libc::id_t::from(child), libc::WEXITED | libc::WNOWAIT);
        // SAFETY: `info` is a valid pointer for the call, which only writes to it.
        while unsafe { libc::waitid(libc::P_PID, child, info.as_mut_ptr(), options) } != 0
            && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
        {}
        let _ = sender.send(());
    });
    waiting.is_ok() && ended.recv_timeout(patience).is_ok()
}

/// Asks the supervisor `child` to end its test. The child must not be reaped.
pub(super) fn ask_to_end(child: u32) {
    let Ok(child) = i32::try_from(child) else { return };
    let value = libc::sigval { sival_ptr: std::ptr::null_mut() };
    // SAFETY: the call sends a signal and does not access memory of this process. If it fails, the
    // supervisor has ended.
    unsafe { libc::sigqueue(child, PARENT_ENDED, value) };
}

/// Kills all remaining processes of a group.
pub(super) fn kill_group(group: i32) {
    // SAFETY: the call sends a signal and does not access memory of this process. If it
    // fails, the group has already ended, as intended.
    unsafe { libc::killpg(group, libc::SIGKILL) };
}
