//! Why there is no archive, or none to run, and what to do about it.

use std::io;
use std::path::PathBuf;

use memcheck_core::exit;

use super::elf::Target;
use crate::error::Expected;

/// Why there is no archive, or none to run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    /// It could not be read.
    #[error("archive {path}: {error}", path = .0.display(), error = .1)]
    Unreadable(PathBuf, io::Error),
    /// Something else.
    #[error("{path} is not {what}", path = .0.display(), what = .1)]
    NotOne(PathBuf, &'static str),
    /// Half an archive.
    #[error("archive {path} is cut off or damaged: {why}", path = .0.display(), why = .1)]
    Torn(PathBuf, String),
    /// Written by another version.
    #[error("archive {path} was written by another version of the tool: {what}", path = .0.display(), what = .1)]
    Version(PathBuf, String),
    /// Built for other machines.
    #[error("archive {path} was built for {theirs}, and this machine is {ours}", path = .0.display(), theirs = .1, ours = .2)]
    Target(PathBuf, Target, Target),
    /// Line tables of other executables.
    #[error("{path} holds the line tables of another archive", path = .0.display())]
    Stranger(PathBuf),
    /// Built for other devices.
    #[error("--device {device}: the archive was built for {built}")]
    NotFor {
        /// What was asked for.
        device: String,
        /// What there is.
        built: String,
    },
    /// The folder to extract to holds something.
    #[error("--extract-to {path}: the directory is not empty", path = .0.display())]
    NotEmpty(PathBuf),
    /// The sources are not where they were said to be.
    #[error("--workspace-remap: {path} is not a directory", path = .0.display())]
    NoSources(PathBuf),
    /// An executable that had tests lists none.
    #[error("{id}: the test executable lists no memory tests here, and {there}{said}")]
    Silent {
        /// The executable.
        id: String,
        /// How many there were where it was built.
        there: String,
        /// What it said instead.
        said: String,
    },
    /// Two archives in one file.
    #[error("--line-tables: {path} is the archive itself", path = .0.display())]
    SameFile(PathBuf),
    /// Nothing to pack.
    #[error("no test executable carries memory tests")]
    NoTests,
    /// A package that has no place below the workspace.
    #[error("package {0} lies outside the workspace's folder, {root}", root = .1.display())]
    Outside(String, PathBuf),
    /// A file that goes into the archive, or the archive itself.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    /// Line tables could not be taken out.
    #[error("the line tables of {path} cannot be taken out: {why}", path = .0.display(), why = .1)]
    Strip(PathBuf, String),
}

impl Expected for ArchiveError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Unreadable(_, error) if error.kind() == io::ErrorKind::NotFound => exit::USAGE,
            Self::Unreadable(..) | Self::Io(..) => exit::INTERNAL,
            Self::NotOne(..)
            | Self::Version(..)
            | Self::Target(..)
            | Self::Stranger(_)
            | Self::NotEmpty(_)
            | Self::SameFile(_)
            | Self::NoSources(_)
            | Self::Outside(..) => exit::USAGE,
            // Tests that nobody knows anything of were not measured.
            Self::Torn(..) | Self::Silent { .. } => exit::NOT_MEASURED,
            Self::NotFor { .. } => exit::NO_DEVICE,
            Self::NoTests => exit::NO_TESTS,
            Self::Strip(..) => exit::BUILD,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotOne(..) => "`cargo memcheck archive --archive-file FILE` makes an archive",
            Self::Torn(..) => "the copy is incomplete: compare its size with the original's",
            Self::Version(..) => "use the same version of cargo-memcheck on both machines",
            Self::Target(..) => "build it with --target, or on a machine like this one",
            Self::Stranger(_) => "name the two files that one `cargo memcheck archive` wrote",
            Self::NotFor { .. } => "`cargo memcheck archive --device …` builds for a device",
            Self::NotEmpty(_) => "name a new directory, or empty this one",
            Self::SameFile(_) => "name another file for them",
            Self::Silent { .. } => "start it with --list on this machine: what does it say?",
            Self::NoTests => "`cargo memcheck list` shows the tests",
            Self::Outside(..) => "leave it out with --exclude, or move it into the workspace",
            Self::Strip(..) => {
                "rustup's toolchains bring rust-objcopy, binutils objcopy; --line-tables keep needs neither"
            }
            Self::Unreadable(..) | Self::NoSources(_) | Self::Io(..) => return None,
        };
        Some(hint.to_owned())
    }
}
