//! Reads files that another program can have written: the tree is that of a pull request, the
//! results are those of another machine, and a test can write anywhere. Such a file can be a link
//! to a device, which has no end, or a named pipe, which no process writes to. Only regular files
//! are read therefore, also through a link, and each kind of file has a limit.
//!
//! A test searches the sources for other reads.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use crate::os;
use crate::size::Size;

/// The most bytes of a report of a test process. One with 1,000,000 holders has about 200 MB, so
/// that this leaves room for twice as many. A larger one would use up the memory of its reader.
pub const REPORT: u64 = 512 << 20;

/// The most bytes of the state that a test process keeps. It has 2 KiB of numbers and the paths of a
/// few folders.
pub const LAST_STATE: u64 = 1 << 20;

/// The most bytes of stored results, which are read line by line. The results of 100,000 tests
/// have some gigabytes.
pub const RESULTS: u64 = 64 << 30;

/// The most bytes of a line of stored results: a report, which has become longer by the names of
/// its call sites, with the output of its test.
pub const RESULTS_LINE: u64 = 2 * REPORT;

/// The most bytes of a snapshot, accepted or pending. It has some kilobytes, and its parser refuses
/// YAML of more than 1 MiB.
pub const SNAPSHOT: u64 = 4 << 20;

/// The most bytes of `.config/memcheck.toml`, which people write.
pub const CONFIGURATION: u64 = 1 << 20;

/// The most bytes of a Cargo.lock. That of 1,000 crates has 300 kB.
pub const LOCK_FILE: u64 = 64 << 20;

/// The most bytes of a source file or a manifest, which people write.
pub const SOURCE: u64 = 2 << 20;

/// The most bytes of the configuration of a model. Those of Hugging Face have some kilobytes.
pub const MODEL: u64 = 16 << 20;

/// The most bytes of a history of figures. A line has about 500 bytes, so that this has room for
/// 1,000 tests at 2,000 commits. It is read as a whole.
pub const HISTORY: u64 = 1 << 30;

/// The most bytes of a file that the command keeps for its next run, such as a proof.
pub const OWN: u64 = 64 << 20;

/// The most bytes of an artifact of cargo, which is searched piece by piece.
pub const EXECUTABLE: u64 = 64 << 30;

/// Opens a regular file of at most `most` bytes. For a reader that takes it piece by piece, or that
/// needs its lock.
///
/// # Errors
/// Those of the system, and a refusal ([`is_refusal`]) that names the size or kind of the file and
/// the limit.
pub fn open(path: &Path, most: u64) -> io::Result<File> {
    // Devices can act when they are opened.
    check(&fs::metadata(path)?, most)?;
    // Another program can replace the file meanwhile, and opening must not wait for a pipe.
    let file = os::open_without_waiting(path)?;
    check(&file.metadata()?, most)?;
    Ok(file)
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// Those of [`open`].
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The file may grow meanwhile.
    open(path, most)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    check_size(bytes.len() as u64, most)?;
    Ok(bytes)
}

/// Reads a regular file of at most `most` bytes, which must be UTF-8.
///
/// # Errors
/// Those of [`open`], and one for other text.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not valid UTF-8"))
}

/// The same for a path that a record or stored results name. Outside of `root`, once links are
/// followed, there is no file for them.
///
/// # Errors
/// Those of [`read_text`]. A path outside of `root` is not found.
pub fn read_text_inside(path: &Path, root: &Path, most: u64) -> io::Result<String> {
    let path = fs::canonicalize(path)?;
    if !path.starts_with(fs::canonicalize(root)?) {
        return Err(ErrorKind::NotFound.into());
    }
    read_text(&path, most)
}

/// True if a function of this module has refused the file because of its size or its kind.
pub fn is_refusal(error: &io::Error) -> bool {
    use ErrorKind::{FileTooLarge, InvalidInput, IsADirectory};
    matches!(error.kind(), FileTooLarge | InvalidInput | IsADirectory)
}

fn check(metadata: &Metadata, most: u64) -> io::Result<()> {
    if metadata.is_file() {
        return check_size(metadata.len(), most);
    }
    let (kind, most) = (kind(metadata.file_type()), Size(most));
    let why = format!("it is {kind}, and only a regular file of at most {most} is read");
    let error = if metadata.is_dir() { ErrorKind::IsADirectory } else { ErrorKind::InvalidInput };
    Err(io::Error::new(error, why))
}

fn check_size(size: u64, most: u64) -> io::Result<()> {
    if size <= most {
        return Ok(());
    }
    let why = format!("it has {}, and the most is {}", Size(size), Size(most));
    Err(io::Error::new(ErrorKind::FileTooLarge, why))
}

fn kind(kind: FileType) -> &'static str {
    if kind.is_dir() { "a directory" } else { os::special_kind(kind) }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    #[test]
    fn only_a_regular_file_is_read_and_only_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("four"), "four").unwrap();
        symlink("four", path("link")).unwrap();
        for file in ["four", "link"] {
            assert_eq!(read_text(&path(file), 4).unwrap(), "four");
            assert_eq!(
                read(&path(file), 3).unwrap_err().to_string(),
                "it has 4 B, and the most is 3 B"
            );
        }
        // A file with a hole takes no space, and reading it would take 1 TiB.
        File::create(path("hole")).unwrap().set_len(1 << 40).unwrap();
        fs::create_dir(path("folder")).unwrap();
        let made = Command::new("mkfifo").arg(path("pipe")).status();
        assert!(made.is_ok_and(|status| status.success()));
        let _listener = UnixListener::bind(path("socket")).unwrap();
        symlink("/dev/zero", path("zero")).unwrap();
        symlink("pipe", path("link to a pipe")).unwrap();
        let not = |kind: &str| {
            format!("it is {kind}, and only a regular file of at most 4.00 MiB is read")
        };
        for (name, expected) in [
            ("hole", "it has 1.00 TiB, and the most is 4.00 MiB".to_owned()),
            ("folder", not("a directory")),
            ("pipe", not("a named pipe")),
            ("link to a pipe", not("a named pipe")),
            ("socket", not("a socket")),
            ("zero", not("a character device")),
        ] {
            let error = read_text(&path(name), SNAPSHOT).unwrap_err();
            assert_eq!((error.to_string(), is_refusal(&error)), (expected, true), "{name}");
        }
        fs::write(path("latin"), b"\xe9").unwrap();
        for (name, kind) in [("none", ErrorKind::NotFound), ("latin", ErrorKind::InvalidData)] {
            let error = read_text(&path(name), SNAPSHOT).unwrap_err();
            assert_eq!((error.kind(), is_refusal(&error)), (kind, false), "{name}");
        }
    }

    /// A file of `/proc` has no size until it is read, like a file that grows.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_longer_than_its_size_is_refused_at_the_limit() {
        let error = read("/proc/self/status".as_ref(), 10).unwrap_err();
        assert_eq!(error.to_string(), "it has 11 B, and the most is 10 B");
    }

    #[test]
    fn a_path_that_leaves_the_root_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("ws");
        fs::create_dir_all(root.join("snapshots")).unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        fs::write(root.join("own"), "own").unwrap();
        symlink("../../secret", root.join("snapshots/link")).unwrap();
        symlink("../own", root.join("snapshots/inner")).unwrap();
        // The root can be reached through a link too.
        symlink("ws", folder.path().join("linked")).unwrap();
        for root in [root.clone(), folder.path().join("linked")] {
            let read = |name: &str| read_text_inside(&root.join(name), &root, 10);
            assert_eq!(
                (read("own").unwrap(), read("snapshots/inner").unwrap()),
                ("own".into(), "own".into())
            );
            for outside in ["../secret", "snapshots/link", "/dev/zero", "none"] {
                assert_eq!(read(outside).unwrap_err().kind(), ErrorKind::NotFound, "{outside}");
            }
        }
    }
}
