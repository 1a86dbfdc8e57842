//! The descendants of a supervisor: adopts them, waits for them, and kills them. A process is
//! killed only while its number is known to be its own: it has not been reaped, or it is a child
//! that only this thread can reap.

use std::io;
use std::time::{Duration, Instant};

use super::messages::Membership;
use crate::os::{self, Pid};

/// For descendants to end after SIGKILL. One that waits for a device cannot end.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the status of `program` when it has ended, and leaves it unreaped. Reaps adopted children
/// until then.
pub(super) fn wait_for(program: Pid) -> io::Result<i32> {
    loop {
        match os::wait_for_any()? {
            (ended, status) if ended == program => return Ok(status),
            (other, _) => drop(os::reap(Some(other))),
        }
    }
}

/// Must be called before `program` is reaped.
pub(super) fn kill_program(program: Pid, membership: Membership) {
    os::signal(program, libc::SIGKILL);
    kill_group(program, membership);
}

/// Must be called before `program` is reaped, because a later group could have the same number.
pub(super) fn kill_group(program: Pid, membership: Membership) {
    if membership == Membership::Own {
        // It has no effect if the program has left its group.
        os::kill_group(program);
    }
}

/// Must not be called while another thread waits for processes.
pub(super) fn kill_all(membership: Membership) {
    let kill = |child| {
        let is_included = is_included(child, membership);
        if is_included {
            os::signal(child, libc::SIGKILL);
        }
        is_included
    };
    kill_children(kill, || {
        loop {
            match os::reap(None) {
                Ok(0) => return false,
                Ok(_) => {}
                // No child is left.
                Err(_) => return true,
            }
        }
    });
}

fn is_included(child: Pid, membership: Membership) -> bool {
    match membership {
        Membership::Own => true,
        Membership::OfCommand => os::session(child) == os::session(0),
    }
}

/// Kills the children of this process until none is left or [`PATIENCE`] is over.
///
/// `kill` returns false for a child that may continue. `reap` reaps all children that have ended,
/// and returns true if this process has no child then. Only the caller may reap in the meantime, so
/// that the number of a child belongs to no other process.
fn kill_children(mut kill: impl FnMut(i32) -> bool, mut reap: impl FnMut() -> bool) {
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

#[cfg(test)]
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
        kill_children(
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
