//! Files that stay open while a body runs. A body may close all descriptors of the process, and a
//! file that it then opens can have the number of one of these. The file under that number belongs
//! to the body, so that it must be neither used nor closed.

use std::fs::File;
use std::path::Path;

/// An open file, by which a number that was used again is recognized: its device, its inode and its
/// kind. All files are the same on a system without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity([u64; 3]);

impl Identity {
    fn of(file: &File) -> Option<Self> {
        file.metadata().ok().map(|metadata| Self(super::identity(&metadata)))
    }

    /// The identity of the file that is opened by this path.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self(super::identity(&metadata)))
    }
}

/// A file that stays open while a body runs.
#[derive(Debug)]
pub(crate) struct KeptFile {
    /// `None` after the body has closed its descriptor.
    file: Option<File>,
    identity: Option<Identity>,
}

impl KeptFile {
    /// Keeps the file under a high number, because bodies that close descriptors by number seldom
    /// reach it.
    pub(crate) fn new(file: File) -> Self {
        let file = super::duplicate(&file).unwrap_or(file);
        Self { identity: Identity::of(&file), file: Some(file) }
    }

    /// The file; `None` if the body has closed its descriptor. Does not allocate memory.
    pub(crate) fn get(&mut self) -> Option<&File> {
        if let Some(file) = self.file.take_if(|file| Identity::of(file) != self.identity) {
            // Closing it would close the file of the body.
            super::leave_open(file);
        }
        self.file.as_ref()
    }

    pub(crate) fn identity(&self) -> Option<Identity> {
        self.identity
    }
}

/// Does not close a descriptor of the body.
impl Drop for KeptFile {
    fn drop(&mut self) {
        self.get();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

    use super::*;
    use crate::os::redirect;

    /// The number of a file that is kept, and a function that returns which file has it now.
    fn under_number(kept: &KeptFile) -> (i32, impl Fn() -> Option<Identity> + use<>) {
        let number = kept.file.as_ref().expect("the file is open").as_raw_fd();
        assert!(number >= 1000, "{number} is low");
        (number, move || Identity::at(Path::new(&format!("/dev/fd/{number}"))))
    }

    #[test]
    fn a_number_that_the_body_uses_again_is_neither_used_nor_closed() {
        let (mut pipe, end) = std::io::pipe().unwrap();
        let mut kept = KeptFile::new(OwnedFd::from(end).into());
        kept.get().unwrap().write_all(b"a").unwrap();
        let (_, now) = under_number(&kept);
        let of_body = tempfile::tempfile().unwrap();
        redirect(kept.file.as_ref().unwrap().as_fd(), &of_body);
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        assert_eq!(text, "a", "the pipe is closed");
        assert!(kept.get().is_none() && kept.get().is_none());
        drop(kept);
        assert_eq!(now(), Identity::of(&of_body));
    }

    #[test]
    fn a_descriptor_that_the_body_has_closed_is_not_closed_again() {
        let mut kept = KeptFile::new(tempfile::tempfile().unwrap());
        let (number, _) = under_number(&kept);
        // SAFETY: the number is open, and `kept` must notice that it is closed.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
        assert!(kept.get().is_none());
    }

    #[test]
    fn a_file_that_no_body_has_closed_is_closed_in_the_end() {
        let file = tempfile::tempfile().unwrap();
        let kept = KeptFile::new(file.try_clone().unwrap());
        let (_, now) = under_number(&kept);
        assert_eq!(now(), Identity::of(&file));
        drop(kept);
        assert_ne!(now(), Identity::of(&file));
    }
}
