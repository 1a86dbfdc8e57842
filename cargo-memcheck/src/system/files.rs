//! Replaces files as a whole, by a new file that takes the name of the old one. Text is written under another name in the same folder, and the new
//! file is renamed when it is complete, so that a full disk or a killed process leaves the old file
//! or the new one.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use memcheck_core::input;
use tempfile::NamedTempFile;

const SUFFIX: &str = ".part";

/// An unfinished file. If it is dropped, its target stays as it was.
#[derive(Debug)]
pub(crate) struct Replacement {
    file: NamedTempFile,
    target: PathBuf,
}

impl Replacement {
    /// Creates the folder of `target` if necessary.
    pub(crate) fn new(target: &Path) -> io::Result<Self> {
        let folder = folder(target);
        fs::create_dir_all(folder)?;
        remove_abandoned(target);
        let file = tempfile::Builder::new()
            .prefix(&prefix(target))
            .suffix(SUFFIX)
            // A temporary file is only for its owner, but the target must have the permissions of
            // an ordinary file.
            .permissions(fs::Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        // The lock shows other processes that this file is in use. Some file systems have no locks.
        let _ = file.as_file().try_lock();
        if let Some(there) = fs::symlink_metadata(target).ok().filter(fs::Metadata::is_file) {
            file.as_file().set_permissions(there.permissions())?;
        }
        Ok(Self { file, target: target.to_owned() })
    }

    pub(crate) fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// For writers that open a path themselves.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the open file, which further text can be appended to.
    pub(crate) fn commit(self) -> io::Result<File> {
        // Some file systems report a full disk only here.
        // By the path, because another program can have written the file under it.
        File::open(self.file.path())?.sync_all()?;
        let file = self.file.persist(&self.target).map_err(|error| error.error)?;
        // The new file is complete, even if the file system cannot sync a folder.
        let _ = File::open(folder(&self.target)).and_then(|folder| folder.sync_all());
        Ok(file)
    }
}

/// Replaces the file at `target`, or creates it with its folder.
pub(crate) fn replace(target: &Path, contents: &[u8]) -> io::Result<()> {
    replace_with(target, |file| file.write_all(contents))
}

/// The same for contents that `write` writes bit by bit.
pub(crate) fn replace_with<E: From<io::Error>>(
    target: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut replacement = Replacement::new(target)?;
    let mut file = BufWriter::new(replacement.file());
    write(&mut file)?;
    // A writer that is dropped loses the error of its last write.
    file.flush()?;
    drop(file);
    Ok(replacement.commit().map(drop)?)
}

/// Appends lines to a file, or creates it with its folder. Other processes can append at the same
/// time. Part of a line that a killed process has left gets an end.
pub(crate) fn append(target: &Path, lines: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder(target))?;
    let mut file = File::options().create(true).append(true).read(true).open(target)?;
    // A file system without locks has other ways to keep writers apart, or one writer.
    let _ = file.lock();
    let length = file.seek(SeekFrom::End(0))?;
    let mut text = Vec::with_capacity(lines.len() + 1);
    if length > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            text.push(b'\n');
        }
    }
    text.extend_from_slice(lines);
    let written = file.write_all(&text).and_then(|()| file.sync_data());
    if written.is_err() {
        // A part of the lines would be a damaged history.
        let _ = file.set_len(length);
    }
    written
}

/// Returns true if the contents were different.
pub(crate) fn replace_if_different(target: &Path, contents: &[u8]) -> io::Result<bool> {
    // A larger file is different.
    if input::read(target, contents.len() as u64).is_ok_and(|there| there == contents) {
        return Ok(false);
    }
    replace(target, contents).map(|()| true)
}

/// It is not an error if the file does not exist.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A hash, because the name of a target can be as long as a file name may be.
fn prefix(target: &Path) -> String {
    // Its keys are constant, so that every process finds the files of another one.
    let mut hasher = DefaultHasher::new();
    target.file_name().hash(&mut hasher);
    format!(".memcheck-{:016x}-", hasher.finish())
}

/// Removes the unfinished files that killed processes left of earlier replacements of the same
/// file.
fn remove_abandoned(target: &Path) {
    let prefix = prefix(target);
    let is_part = |name: &OsStr| {
        name.to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(SUFFIX))
    };
    let files = fs::read_dir(folder(target)).into_iter().flatten().flatten();
    for file in files.filter(|file| is_part(&file.file_name())) {
        // A living process holds the lock of its file, or has created it only just now.
        let age =
            file.metadata().and_then(|it| it.modified()).ok().and_then(|at| at.elapsed().ok());
        let is_new = age.is_none_or(|age| age < std::time::Duration::from_secs(2));
        // Only its lock is needed, whatever its size.
        let open = || input::open(&file.path(), u64::MAX);
        if !is_new && open().is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(file.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/report.xml");
        for text in ["a longer text", "short"] {
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(path.parent().unwrap()), ["report.xml"]);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(replace_if_different(&path, b"other").unwrap());
        assert!(!replace_if_different(&path, b"other").unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_write_error_at_any_point_leaves_the_old_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("results");
        replace(&path, b"old").unwrap();
        for written in 0..4 {
            let mut unfinished = Replacement::new(&path).unwrap();
            (0..written).for_each(|_| unfinished.file().write_all(b"new").unwrap());
            // The disk is full now.
            drop(unfinished);
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert_eq!(names(root.path()), ["results"]);
        }
        // A file in place of the folder, because root may write to a read-only folder.
        assert!(replace(&path.join("below"), b"new").is_err());
        fs::create_dir(root.path().join("folder")).unwrap();
        assert!(replace(&root.path().join("folder"), b"new").is_err());
        assert_eq!(names(root.path()), ["folder", "results"]);
    }

    #[test]
    fn the_next_replacement_removes_the_file_that_a_killed_process_left() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("results");
        let abandoned = root.path().join(format!("{}abc{SUFFIX}", prefix(&path)));
        let file = File::create(&abandoned).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        file.lock().unwrap();
        replace(&path, b"1").unwrap();
        assert!(abandoned.exists(), "a living process writes it");
        drop(file);
        replace(&path, b"2").unwrap();
        assert_eq!(names(root.path()), ["results"]);
    }

    #[test]
    fn a_name_of_the_greatest_length_can_be_replaced() {
        let root = tempfile::tempdir().unwrap();
        replace(&root.path().join("a".repeat(255)), b"1").unwrap();
    }
}
