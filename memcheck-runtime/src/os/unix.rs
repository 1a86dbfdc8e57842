//! Descriptors and handlers of Unix.

use std::fs::{File, Metadata};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Device, inode and kind of a file.
pub(super) fn identity(metadata: &Metadata) -> [u64; 3] {
    // Without the permissions, which can change. `S_IFMT` has another type on other systems.
    const KIND: u32 = 0o170_000;
    [metadata.dev(), metadata.ino(), u64::from(metadata.mode() & KIND)]
}

/// The least numbers of descriptors that are kept. The second one is below the usual limit.
const LEAST: [i32; 2] = [1 << 12, 1000];

/// Another descriptor of the same file, whose number is as high as the limit of the process allows.
/// Programs that the process starts do not inherit it. `None` if the system refuses.
pub(super) fn duplicate(file: &File) -> Option<File> {
    LEAST.into_iter().find_map(|least| {
        let number = file.as_raw_fd();
        // SAFETY: `number` is open during the call, which does not access memory.
        let duplicate = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, least) };
        // SAFETY: the call has just opened this descriptor, which has no other owner.
        (duplicate >= 0).then(|| unsafe { OwnedFd::from_raw_fd(duplicate) }.into())
    })
}

/// Forgets a descriptor without closing it.
pub(super) fn leave_open(file: File) {
    let _ = file.into_raw_fd();
}

/// Copies of the descriptors of stdout and stderr.
pub(super) fn streams() -> std::io::Result<[File; 2]> {
    let copy = |stream: BorrowedFd<'_>| stream.try_clone_to_owned().map(File::from);
    Ok([copy(std::io::stdout().as_fd())?, copy(std::io::stderr().as_fd())?])
}

/// Makes stdout and stderr duplicates of these files.
pub(super) fn redirect_streams([to_stdout, to_stderr]: [Option<&File>; 2]) {
    // Lines that were printed so far belong to the former file. Standard error has no buffer.
    let _ = std::io::stdout().flush();
    if let Some(file) = to_stdout {
        redirect(std::io::stdout().as_fd(), file);
    }
    if let Some(file) = to_stderr {
        redirect(std::io::stderr().as_fd(), file);
    }
}

/// Makes `stream` a duplicate of `to`. Both stay open.
pub(crate) fn redirect(stream: BorrowedFd<'_>, to: &impl AsRawFd) {
    // SAFETY: both descriptors are open during the call, and `dup2` does not access memory.
    // `stream` stays valid when `to` is closed, because `dup2` duplicates the open file.
    unsafe { libc::dup2(to.as_raw_fd(), stream.as_raw_fd()) };
}

/// Replaces this process by another program. Returns only if the system refuses.
pub(crate) fn exec(mut command: Command) -> std::io::Error {
    command.exec()
}

/// Reads from the start of a file, whose position stays the same.
pub(crate) fn read_start(file: &File, into: &mut [u8]) -> std::io::Result<usize> {
    file.read_at(into, 0)
}

/// Calls `handler` in each child that the program forks. It may only store to atomics.
pub(crate) fn in_forked_children(handler: extern "C" fn()) {
    // SAFETY: the handler only stores to atomics, which is allowed after fork.
    unsafe { libc::pthread_atfork(None, None, Some(handler)) };
}

/// Calls `handler`, which must not unwind, when the program exits. False if the system refuses.
pub(crate) fn at_exit(handler: extern "C" fn()) -> bool {
    // SAFETY: the handler is a function without arguments that does not unwind.
    unsafe { libc::atexit(handler) == 0 }
}

/// Ends this process without the handlers of an exit.
pub(crate) fn exit_at_once(code: i32) -> ! {
    // SAFETY: the call takes a number and does not return.
    unsafe { libc::_exit(code) }
}
