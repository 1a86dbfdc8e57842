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

/// The processes whose parent is this one. Empty on a system without `/proc`.
///
/// From the fields of all processes, because the kernel's list of children may be incomplete while
/// children end.
pub(crate) fn children() -> impl Iterator<Item = i32> {
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
