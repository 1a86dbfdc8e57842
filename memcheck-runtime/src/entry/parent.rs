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

use memcheck_core::quiet;
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::{Pid, getpgrp, getpid, getppid};

/// The kernel sends it when the parent's thread that forked has ended: that
/// one waits for us. No hardware has it any more, and no library takes it.
const PARENT_ENDED: Signal = Signal::SIGSTKFLT;

fn signals() -> SigSet {
    SigSet::from(PARENT_ENDED)
}

/// Asks the kernel to tell when `parent` ends. On the main thread: with a thread
/// that ended the kernel would forget it.
pub(super) fn tie(parent: u32) {
    if signals().thread_block().is_err() || nix::sys::prctl::set_pdeathsig(PARENT_ENDED).is_err() {
        eprintln!("memcheck: this process may outlive the one that started it");
    }
    if u32::try_from(getppid().as_raw()) != Ok(parent) {
        // It ended before it could be asked about.
        end();
    }
}

/// Waits, aside, for what [`tie`] has asked for.
pub(super) fn watch() {
    let watching = std::thread::Builder::new().name("memcheck parent".to_owned()).spawn(|| {
        let _quiet = quiet::enter();
        if signals().wait() == Ok(PARENT_ENDED) {
            end();
        }
    });
    if let Err(error) = watching {
        eprintln!("memcheck: this process may outlive the one that started it: {error}");
    }
}

/// Ends this process, and its group where that is its own.
fn end() -> ! {
    if getpgrp() == getpid() {
        kill_group(getpgrp());
    }
    std::process::abort()
}

/// Kills every process of a group that is still there.
pub(super) fn kill_group(group: Pid) {
    // Gone already is what is wanted.
    let _ = killpg(group, Signal::SIGKILL);
}
