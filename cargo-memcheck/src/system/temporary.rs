//! Temporary folders, each with a lock that a killed command releases. A command that is killed cannot remove its folders, so that each has a file
//! that is locked while its command lives, and the next command removes the folders next to its own
//! whose lock is free.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

const LOCK: &str = ".lock";
/// The name of the file before it is locked.
const UNSEEN: &str = ".lock-unseen";
/// A folder without a lock file may belong to a command that has just made it.
const NEW: Duration = Duration::from_secs(60);

/// To replace a folder before another thread creates it again.
const ATTEMPTS: u32 = 100;

/// The folders of this process, so that another thread can remove them after a signal.
static OWN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A folder with a place that others know, which is removed if a signal ends the process.
#[derive(Debug)]
pub(crate) struct NamedFolder(PathBuf);

impl NamedFolder {
    /// The folder need not exist yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        own().push(path.clone());
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for NamedFolder {
    fn drop(&mut self) {
        own().retain(|folder| *folder != self.0);
        // A folder that was never created.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn own() -> MutexGuard<'static, Vec<PathBuf>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    folder: TempDir,
    /// The lock ends with the file.
    _lock: File,
}

impl TemporaryFolder {
    /// Also removes the folders in `parent` with this prefix that belong to no living command.
    pub(crate) fn new(parent: &Path, prefix: &str) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?;
        // Before it has contents, so that a signal removes it from now on.
        own().push(folder.path().to_owned());
        // Other commands must not see the file before it is locked.
        let unseen = folder.path().join(UNSEEN);
        let lock = File::create(&unseen)?;
        let locked = lock.try_lock();
        // Also without a lock, because a folder without the file is taken for an abandoned one.
        fs::rename(unseen, folder.path().join(LOCK))?;
        match locked {
            Ok(()) => remove_abandoned(parent, prefix, folder.path()),
            // Without locks no folder of another command can be known to be abandoned.
            Err(TryLockError::Error(_) | TryLockError::WouldBlock) => {}
        }
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        own().retain(|folder| folder != self.folder.path());
    }
}

/// Removes the folders of this process, which must end at once. Its children must have ended.
pub(super) fn remove_all() {
    let folders: Vec<PathBuf> = own().drain(..).collect();
    remove_folders(&folders, || {});
}

fn remove_folders(folders: &[PathBuf], before_the_end: impl FnOnce()) {
    for folder in folders {
        for attempt in 0..ATTEMPTS {
            let renamed = folder.with_extension(format!("removed-{attempt}"));
            if fs::rename(folder, &renamed).is_err() {
                let _ = fs::remove_dir_all(folder);
                break;
            }
            // Another thread of this process may still write. A file in place of the folder makes
            // it fail, unless it has created the folder again in the meantime.
            let is_replaced = File::create(folder).is_ok();
            let _ = fs::remove_dir_all(&renamed);
            if is_replaced {
                break;
            }
        }
    }
    before_the_end();
    for folder in folders {
        let _ = fs::remove_file(folder);
    }
}

fn remove_abandoned(parent: &Path, prefix: &str, made: &Path) {
    let Ok(owner) = made.metadata().map(|metadata| metadata.uid()) else { return };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_string_lossy().starts_with(prefix);
        if is_named && entry.path() != made && is_abandoned(&entry, owner).unwrap_or(false) {
            // Another command may remove it at the same time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Other users have such folders in the folder of the system.
fn is_abandoned(entry: &fs::DirEntry, owner: u32) -> io::Result<bool> {
    let metadata = entry.metadata()?;
    if !metadata.is_dir() || metadata.uid() != owner {
        return Ok(false);
    }
    // Opening must not wait if the file is a named pipe.
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOFOLLOW;
    let path = entry.path().join(LOCK);
    match File::options().read(true).custom_flags(flags).open(path) {
        Ok(lock) => Ok(lock.try_lock().is_ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let age = SystemTime::now().duration_since(metadata.modified()?);
            Ok(age.is_ok_and(|age| age > NEW))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).unwrap().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_is_removed_while_a_thread_writes_to_it() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run-x");
        fs::create_dir(&folder).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let place = folder.clone();
        let writer = std::thread::spawn(move || {
            let written = (0..).take_while(|number| {
                let deep = place.join(format!("{}", number % 50));
                let result = fs::create_dir_all(&deep).and_then(|()| fs::write(deep.join("x"), ""));
                let _ = sender.send(());
                result.is_ok()
            });
            written.count()
        });
        (0..100).for_each(|_| receiver.recv().unwrap());
        remove_folders(std::slice::from_ref(&folder), || {
            assert!(writer.join().unwrap() >= 100);
        });
        assert_eq!(names(parent.path()), [""; 0]);
    }

    #[test]
    fn commands_that_start_at_the_same_time_keep_their_folders() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let own = TemporaryFolder::new(parent.path(), "run-").unwrap();
                        std::thread::yield_now();
                        assert!(own.path().join(LOCK).exists());
                    }
                });
            }
        });
        assert_eq!(names(parent.path()), [""; 0]);
    }

    #[test]
    fn the_next_command_removes_the_folders_of_a_killed_one_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let living = TemporaryFolder::new(parent.path(), "run-").unwrap();
        // The lock of a killed command is free. These folders have no lock: one is old, and one is
        // new.
        for name in ["run-killed", "run-old", "run-new", "other-killed"] {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        fs::write(parent.path().join("run-killed/.lock"), "").unwrap();
        fs::write(parent.path().join("run-killed/report.json"), "").unwrap();
        fs::write(parent.path().join("other-killed/.lock"), "").unwrap();
        let old = SystemTime::now() - NEW * 2;
        File::open(parent.path().join("run-old")).unwrap().set_modified(old).unwrap();
        std::os::unix::fs::symlink("run-new", parent.path().join("run-link")).unwrap();
        let next = TemporaryFolder::new(parent.path(), "run-").unwrap();
        let name = |folder: &TemporaryFolder| {
            folder.path().file_name().unwrap().to_str().unwrap().to_owned()
        };
        let mut expected = vec![
            name(&living),
            name(&next),
            "other-killed".into(),
            "run-link".into(),
            "run-new".into(),
        ];
        expected.sort();
        assert_eq!(names(parent.path()), expected);
        drop((living, next));
        assert_eq!(names(parent.path()), ["other-killed", "run-link", "run-new"]);
    }
}
