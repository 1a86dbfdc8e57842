//! An executable that cargo built, on this machine or for an archive. The file stays open, so that
//! all processes of a run start the same executable, also if cargo replaces or removes it meanwhile.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memcheck_core::input;
use serde::{Deserialize, Serialize};

use crate::system::elf::ElfTarget;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Binary {
    /// In the form of nextest: `app` (unit tests), `app::mem`, `app::bin/tool`.
    pub(crate) id: String,
    #[serde(skip)]
    pub(crate) package: usize,
    #[serde(skip)]
    path: PathBuf,
    #[serde(skip)]
    pub(crate) environment: Vec<(String, String)>,
    /// `None` if it cannot be opened, which the start of a process reports.
    #[serde(skip)]
    file: Option<Arc<File>>,
}

impl Binary {
    pub(crate) fn new(
        id: String,
        package: usize,
        path: PathBuf,
        environment: Vec<(String, String)>,
    ) -> Self {
        let file = input::open(&path, u64::MAX).ok().map(Arc::new);
        Self { id, package, path, environment, file }
    }

    /// Its place, for messages and for other machines. The file there can be another one by now.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A path to this very file, for processes of this machine while the command runs.
    pub(crate) fn pinned_path(&self) -> PathBuf {
        let pinned = self.file.as_ref().map(|file| {
            // With the number of this process, because its supervisor starts the program.
            PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
        });
        // Without `/proc` the path is all there is.
        pinned.filter(|path| path.exists()).unwrap_or_else(|| self.path.clone())
    }

    /// The machine that it was built for, if this is another one. A system can be set up to start
    /// such programs nevertheless.
    pub(crate) fn foreign_target(&self) -> Option<ElfTarget> {
        let target = ElfTarget::of(&self.pinned_path()).ok()?;
        (target != ElfTarget::here().ok()?).then_some(target)
    }

    /// A path to read it by: its place, next to which its separate line tables are, if that still
    /// has this very file.
    pub(crate) fn readable_path(&self) -> PathBuf {
        if self.check().is_ok() { self.path.clone() } else { self.pinned_path() }
    }

    /// # Errors
    /// If the file at its place is another one, or none.
    pub(crate) fn check(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return fs::metadata(&self.path).map(drop) };
        let identity = |found: Metadata| {
            (found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.len())
        };
        if identity(fs::metadata(&self.path)?) == identity(file.metadata()?) {
            return Ok(());
        }
        Err(io::Error::other("it was built again after its tests were listed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executable_that_is_replaced_or_removed_can_still_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mem");
        fs::write(&path, "old").unwrap();
        let binary = Binary::new("app::mem".to_owned(), 0, path.clone(), Vec::new());
        assert_eq!(binary.readable_path(), path);
        fs::write(folder.path().join("new"), "new").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert!(binary.check().is_err());
        for pinned in [binary.pinned_path(), binary.readable_path()] {
            assert_eq!(fs::read_to_string(pinned).unwrap(), "old");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(fs::read_to_string(binary.readable_path()).unwrap(), "old");
    }

    #[test]
    fn a_missing_executable_keeps_its_path() {
        let binary = Binary::new("app::mem".to_owned(), 0, "/nowhere/mem".into(), Vec::new());
        assert_eq!(binary.pinned_path(), Path::new("/nowhere/mem"));
        assert_eq!(binary.check().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
