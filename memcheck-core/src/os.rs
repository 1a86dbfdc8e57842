//! The differences between systems: opening a file that may be a pipe, kinds of files, signals and
//! the processes of the system. Each function has a fallback for other systems.

use std::fs::{File, FileType};
use std::io;
use std::path::Path;
use std::process::ExitStatus;

/// Opens a file for reading. It neither waits for the other end of a named pipe, nor becomes the
/// terminal of this process.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOCTTY,
    );
    options.read(true).open(path)
}

/// The kind of a file that is neither a regular file nor a directory.
pub(crate) fn special_kind(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        match kind {
            kind if kind.is_fifo() => return "a named pipe",
            kind if kind.is_char_device() => return "a character device",
            kind if kind.is_block_device() => return "a block device",
            kind if kind.is_socket() => return "a socket",
            _ => {}
        }
    }
    let _ = kind;
    "a special file"
}

/// Makes a temporary file one that others can read too, as far as the user permits it.
pub(crate) fn share(builder: &mut tempfile::Builder<'_, '_>) {
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    #[cfg(not(unix))]
    let _ = builder;
}

/// The signal that ended a process; `None` if it ended otherwise.
pub fn signal(status: ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    {
        let _ = status;
        None
    }
}
