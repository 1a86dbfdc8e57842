//! The calls of the system that the supervisor of a process needs. Only Linux has one.
//!
//! They use libc directly, because the nix crate enables a feature of libc, with which every user of
//! memcheck-runtime would have to build candle once more.

use std::io;

/// The number of a process.
pub(crate) type Pid = i32;

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// All descendants whose parents end become children of this process.
///
/// # Errors
/// If the system is older than Linux 3.4.
pub(crate) fn adopt_descendants() -> io::Result<()> {
    // `prctl` is variadic, and reads its arguments as `unsigned long`.
    // SAFETY: this option takes a number and does not access memory.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong) })
}

/// Asks the system to kill this process when the thread that has forked it ends. Does not allocate
/// memory and takes no lock, because it runs between fork and exec.
///
/// # Errors
/// If `parent` has already ended.
pub(crate) fn die_with(parent: Pid) -> io::Result<()> {
    // SAFETY: this option takes the number of a signal and does not access memory.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) })?;
    // SAFETY: the call takes no arguments and cannot fail.
    let current = unsafe { libc::getppid() };
    // The parent can have ended before the request, which then has no effect.
    if current == parent { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}

/// Sends SIGKILL, or another signal, to a process that has not been reaped.
pub(crate) fn signal(process: Pid, number: i32) {
    // SAFETY: the call sends a signal and does not access memory of this process. If it fails, the
    // process has ended.
    unsafe { libc::kill(process, number) };
}

/// Kills all processes of a group whose leader has not been reaped.
pub(crate) fn kill_group(group: Pid) {
    // SAFETY: as in `signal`.
    unsafe { libc::killpg(group, libc::SIGKILL) };
}

/// The session of a process; 0 is this one.
pub(crate) fn session(process: Pid) -> Option<Pid> {
    // SAFETY: the call takes a number and does not access memory.
    let session = unsafe { libc::getsid(process) };
    (session != -1).then_some(session)
}

/// Waits for the end of a child without reaping it. Returns its number, and its status in the encoding
/// of `waitpid`.
///
/// # Errors
/// If there is no child.
pub(crate) fn wait_for_any() -> io::Result<(Pid, i32)> {
    // The bit of `WCOREDUMP`.
    const CORE: i32 = 0x80;
    let mut info = std::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOWAIT;
    loop {
        // SAFETY: `info` is a valid pointer for the call, which only writes to it.
        match checked(unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) }) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // SAFETY: zeros are a valid value, and the call has succeeded. The two fields are those of the
    // signal of a child that has ended.
    let (info, process, status) = unsafe {
        let info = info.assume_init();
        (info, info.si_pid(), info.si_status())
    };
    Ok((
        process,
        match info.si_code {
            libc::CLD_EXITED => status << 8,
            libc::CLD_DUMPED => status | CORE,
            _ => status,
        },
    ))
}

/// Reaps a child that has ended, or any if `process` is `None`. Returns its number, 0 if none has
/// ended, and an error if there is none.
///
/// # Errors
/// If there is no such child.
pub(crate) fn reap(process: Option<Pid>) -> io::Result<Pid> {
    loop {
        // SAFETY: a null pointer is allowed for the status.
        let ended =
            unsafe { libc::waitpid(process.unwrap_or(-1), std::ptr::null_mut(), libc::WNOHANG) };
        match checked(ended) {
            Ok(()) => return Ok(ended),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The processes whose parent is this one.
///
/// From the fields of all processes, because the kernel's list of children may be incomplete while
/// children end.
pub(crate) fn children() -> impl Iterator<Item = Pid> {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(move |number| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat"));
        stat.is_ok_and(|stat| parent(&stat) == Some(own))
    })
}

/// The name of a process is in parentheses and may contain any character. The state and the parent
/// follow it.
fn parent(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

/// A program that ends without reading its input must not end this process. A program that this one
/// starts has the usual reaction, because the standard library resets it.
pub(crate) fn ignore_closed_pipes() {
    // SAFETY: the call takes numbers.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Gives this process a name for lists of processes.
pub(crate) fn take_name(name: &str) {
    let _ = std::fs::write("/proc/self/comm", name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_follows_a_name_with_any_character() {
        assert_eq!(parent("7 (sleep) S 5 7 7 0"), Some(5));
        assert_eq!(parent("7 (a) Z 9 (b c) R 5 7 7 0"), Some(5));
        assert_eq!(parent("7 (sleep"), None);
        assert_eq!(parent(""), None);
    }
}
