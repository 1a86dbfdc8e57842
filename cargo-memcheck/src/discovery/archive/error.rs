//! Errors of archives, with their exit codes and hints.

use std::io;
use std::path::{Path, PathBuf};

use memcheck_core::size::Size;
use memcheck_core::wire::exit;

use super::names;
use crate::system::elf::ElfTarget;
use crate::system::error::CommandError;
use crate::system::process::INTERRUPTED;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[cfg(not(feature = "archives"))]
    #[error("{}", crate::invocation::features::ARCHIVES.refusal("the part that reads archives"))]
    LeftOut,
    #[error("archive {path}: {error}", path = .0.display(), error = .1)]
    Unreadable(PathBuf, io::Error),
    #[error("{path} is not {what}", path = .0.display(), what = .1)]
    NotAnArchive(PathBuf, &'static str),
    #[error("archive {path} is cut off or damaged: {why}", path = .0.display(), why = .1)]
    Damaged(PathBuf, String),
    #[error("archive {path} is refused: {why}", path = .0.display(), why = .1)]
    Refused(PathBuf, String),
    #[error("{folder} has {free} of free space, and the archive needs {needed}", folder = .folder.display(), free = Size(*.free), needed = Size(*.needed))]
    NoSpace {
        folder: PathBuf,
        /// Bytes.
        needed: u64,
        /// Bytes.
        free: u64,
    },
    #[error("the run was interrupted while an archive was read or written")]
    Interrupted,
    #[error("archive {path} was written by another version of the tool: {what}", path = .0.display(), what = .1)]
    Version(PathBuf, String),
    #[error("archive {path} was built for {theirs}, and this machine is {ours}", path = .0.display(), theirs = .1, ours = .2)]
    Target(PathBuf, ElfTarget, ElfTarget),
    #[error("{path} has the line tables of another archive", path = .0.display())]
    OtherArchive(PathBuf),
    #[error("--device {device}: the archive was built for {built}")]
    NotFor {
        device: String,
        /// The devices that the archive was built for.
        built: String,
    },
    #[error("--extract-to {path}: the directory is not empty", path = .0.display())]
    NotEmpty(PathBuf),
    #[error("--workspace-remap: {path} is not a directory", path = .0.display())]
    NoSources(PathBuf),
    /// The executable had tests, or could not be listed, where it was built, and lists none here.
    #[error("{id}: the test executable lists no memory tests here, {there}{warning}")]
    LostTests {
        id: String,
        /// The number of tests on the machine that built the executable, in words.
        there: String,
        warning: String,
    },
    #[error(
        "{0}: the archive does not list the tests of this executable, because it could not be started on the machine that built it"
    )]
    Unlisted(String),
    #[error("{path} cannot be packed: {why}", path = .0.display(), why = .1)]
    Name(PathBuf, String),
    #[error("archive {path} cannot be written: {part} is larger than {limit}", path = .0.display(), part = .1, limit = Size(*.2))]
    TooLarge(PathBuf, &'static str, u64),
    #[error("--line-tables: {path} is the archive itself", path = .0.display())]
    SameFile(PathBuf),
    #[error("no test executable has memory tests")]
    NoTests,
    #[error("package {0} is outside the workspace's folder, {root}", root = .1.display())]
    OutsideWorkspace(String, PathBuf),
    #[error("{one} and {other} have the same name in the archive, but different contents", one = .0.display(), other = .1.display())]
    SameName(PathBuf, PathBuf),
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    #[error("the line tables of {path} cannot be removed: {why}", path = .0.display(), why = .1)]
    Strip(PathBuf, String),
}

impl ArchiveError {
    pub(super) fn damaged(archive: &Path, why: &str) -> Self {
        Self::Damaged(archive.to_owned(), names::printable(why))
    }

    pub(super) fn refused(archive: &Path, why: &str) -> Self {
        Self::Refused(archive.to_owned(), names::printable(why))
    }
}

impl CommandError for ArchiveError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Unreadable(_, error) if error.kind() == io::ErrorKind::NotFound => exit::USAGE,
            Self::Unreadable(..) | Self::Io(..) | Self::NoSpace { .. } => exit::INTERNAL,
            Self::Interrupted => INTERRUPTED,
            #[cfg(not(feature = "archives"))]
            Self::LeftOut => exit::USAGE,
            Self::NotAnArchive(..)
            | Self::Version(..)
            | Self::Target(..)
            | Self::OtherArchive(_)
            | Self::NotEmpty(_)
            | Self::SameFile(_)
            | Self::NoSources(_)
            | Self::SameName(..)
            | Self::Name(..)
            | Self::TooLarge(..)
            | Self::OutsideWorkspace(..) => exit::USAGE,
            // The tests in the archive are unknown, so they count as not measured.
            Self::Damaged(..) | Self::Refused(..) | Self::LostTests { .. } | Self::Unlisted(_) => {
                exit::NOT_MEASURED
            }
            Self::NotFor { .. } => exit::NO_DEVICE,
            Self::NoTests => exit::NO_TESTS,
            Self::Strip(..) => exit::BUILD,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotAnArchive(..) => {
                "`cargo memcheck archive --archive-file FILE` makes an archive"
            }
            Self::Damaged(..) => "the copy is incomplete: compare its size with the original's",
            Self::Refused(..) => {
                "`cargo memcheck archive` does not write such a file: do not run an archive that you do not trust"
            }
            Self::NoSpace { .. } => "name a folder on another disk with --extract-to or TMPDIR",
            Self::Version(..) => {
                "make the archive again, with the version of cargo-memcheck that reads it"
            }
            Self::Target(..) => "build it with --target, or on a machine like this one",
            Self::OtherArchive(_) => "name the two files that one `cargo memcheck archive` wrote",
            Self::NotFor { .. } => {
                "`cargo memcheck archive --archive-file FILE --device …` builds for a device"
            }
            Self::NotEmpty(_) => "name a new directory, or empty this one",
            Self::SameFile(_) => "name another file for them",
            Self::Unlisted(_) => {
                "`cargo memcheck list` without --no-run starts it, on a machine that can start it"
            }
            Self::Name(..) => "leave the package out with --exclude, or rename the file",
            Self::TooLarge(..) => "select the packages with -p, for several archives",
            Self::SameName(..) => "select the packages with -p, for one archive each",
            Self::LostTests { .. } => "start it with --list on this machine to see its output",
            Self::NoTests => "`cargo memcheck list` shows the tests",
            Self::OutsideWorkspace(..) => {
                "leave it out with --exclude, or move it into the workspace"
            }
            Self::Strip(..) => {
                "rustup's toolchains bring rust-objcopy, binutils objcopy; --line-tables keep needs neither"
            }
            #[cfg(not(feature = "archives"))]
            Self::LeftOut => return None,
            Self::Unreadable(..) | Self::NoSources(_) | Self::Io(..) | Self::Interrupted => {
                return None;
            }
        };
        Some(hint.to_owned())
    }
}
