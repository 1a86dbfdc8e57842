//! The child processes of a supervisor, and their end. A supervisor is a process between a test and
//! the program that started it: `cargo-memcheck` has one for each program that it starts, and
//! `memcheck-runtime` one for each test under a plain harness. Both adopt the descendants whose
//! parents have ended.
//!
//! This file reads a clock, and the processes from the system. Signals need a system call, which the callers make.

use std::time::{Duration, Instant};

use crate::os;

/// For descendants to end after SIGKILL. One that waits for a device cannot end.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Kills the children of this process until none is left or [`PATIENCE`] is over.
///
/// `kill` returns false for a child that may continue. `reap` reaps all children that have ended,
/// and returns true if this process has no child then. Only the caller may reap in the meantime, so
/// that the number of a child belongs to no other process.
pub fn kill_all(mut kill: impl FnMut(i32) -> bool, mut reap: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut is_over = true;
        for child in os::children() {
            is_over &= !kill(child);
        }
        // The children of the killed processes become children of this one, and the next round
        // kills them.
        let are_gone = reap();
        if is_over || are_gone || Instant::now() >= deadline {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_is_killed_and_one_that_may_continue_is_not() {
        let start = || Command::new("sleep").arg("600").spawn().unwrap();
        let [mut killed, mut spared] = [start(), start()];
        let mut seen = Vec::new();
        let mut ended = false;
        let started = Instant::now();
        kill_all(
            |child| {
                seen.push(child as u32);
                let is_killed = child as u32 == killed.id() && !ended;
                if is_killed {
                    killed.kill().unwrap();
                    ended = killed.wait().is_ok();
                }
                is_killed
            },
            || false,
        );
        assert!(started.elapsed() < PATIENCE);
        assert!(seen.contains(&killed.id()) && seen.contains(&spared.id()), "{seen:?}");
        assert!(ended && spared.try_wait().unwrap().is_none());
        spared.kill().unwrap();
        spared.wait().unwrap();
    }
}
