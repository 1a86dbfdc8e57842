//! The descendants of a supervisor: adopts them, waits for them, and kills them. A process is
//! killed only while its number is known to be its own: it has not been reaped, or it is a child
//! that only this thread can reap.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::Membership;

/// All descendants whose parents end become children of this process.
pub(super) fn adopt() {
    #[cfg(target_os = "linux")]
    {
        // The call needs Linux 3.4. Without it, processes in other groups can outlive the run.
        let _ = nix::sys::prctl::set_child_subreaper(true);
    }
}

pub(super) fn name_supervisor() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_name(c"memcheck-superv");
}

/// Returns when `program` has ended, and leaves it unreaped where the system can do so. Reaps
/// adopted children until then.
#[cfg(target_os = "linux")]
pub(super) fn wait_for(program: Pid) -> WaitStatus {
    use nix::sys::wait::{Id, waitid};
    loop {
        match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            Ok(status) if status.pid() == Some(program) => return status,
            Ok(status) => {
                let _ = waitpid(status.pid(), Some(WaitPidFlag::WNOHANG));
            }
            Err(Errno::EINTR) => {}
            Err(_) => return WaitStatus::StillAlive,
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn wait_for(program: Pid) -> WaitStatus {
    loop {
        match waitpid(program, None) {
            Ok(status) => return status,
            Err(Errno::EINTR) => {}
            Err(_) => return WaitStatus::StillAlive,
        }
    }
}

/// Must be called before `program` is reaped.
pub(super) fn kill_program(program: Pid, membership: Membership) {
    let _ = kill(program, Signal::SIGKILL);
    kill_group(program, membership);
}

/// Must be called before `program` is reaped, because a later group could have the same number.
pub(super) fn kill_group(program: Pid, membership: Membership) {
    if membership == Membership::Own {
        // The call fails if the program has left its group, which is fine.
        let _ = killpg(program, Signal::SIGKILL);
    }
}

/// Must not be called while another thread waits for processes.
#[cfg(target_os = "linux")]
pub(super) fn kill_all(membership: Membership) {
    let kill_included = |child| {
        let child = Pid::from_raw(child);
        let is_included = is_included(child, membership);
        if is_included {
            let _ = kill(child, Signal::SIGKILL);
        }
        is_included
    };
    memcheck_core::runs::descendants::kill_all(kill_included, reap);
}

#[cfg(not(target_os = "linux"))]
pub(super) fn kill_all(_membership: Membership) {}

/// True if there is no child left.
#[cfg(target_os = "linux")]
fn reap() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return false,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return true,
        }
    }
}

#[cfg(target_os = "linux")]
fn is_included(child: Pid, membership: Membership) -> bool {
    match membership {
        Membership::Own => true,
        Membership::OfCommand => nix::unistd::getsid(Some(child)) == nix::unistd::getsid(None),
    }
}
