//! Errors from listing the tests of an executable, with their exit codes and hints.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use memcheck_core::size::Size;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::VERSION;

use super::LONGEST;
use crate::system::elf::ElfTarget;
use crate::system::error::CommandError;
use crate::system::launcher::TURN;
use crate::system::libraries::{self, Missing};

#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoverError {
    #[error("{0}: the test executable died when it was asked for its tests: {1}{2}")]
    Died(String, String, String),
    #[error("{id}: the test executable did not list its tests within {seconds} s", seconds = .patience.as_secs())]
    Hangs {
        id: String,
        /// The time limit.
        patience: Duration,
    },
    #[error("{0}: the test executable printed more than {most} when it was asked for its tests", most = Size(LONGEST as u64))]
    TooLong(String),
    #[error("{0}: the test executable cannot be started: {1}")]
    Missing(String, Missing),
    #[error("{0}: the test executable could not be started: {1}")]
    Start(String, std::io::Error),
    #[error("{0}: the test executable of the archive could not be started: {1}")]
    StartExtracted(String, std::io::Error),
    #[error(
        "{0}: memcheck-runtime uses version {1} of the protocol, cargo-memcheck version {VERSION}"
    )]
    Version(String, u32),
    #[error("{0}: the test executable is for {1} and does not start on this machine")]
    Foreign(String, ElfTarget),
    #[error("{0}: the test executable is that of another checkout, {path}", path = .1.display())]
    OtherCheckout(String, PathBuf),
    #[error("{0}: the test executable was built without {1}")]
    NotFor(String, &'static str),
}

impl CommandError for DiscoverError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::NotFor(..) => exit::NO_DEVICE,
            Self::Missing(_, missing) => missing.exit_code(),
            _ => exit::NOT_MEASURED,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Missing(_, missing) => Some(libraries::advice(missing)),
            Self::Hangs { patience, .. } if *patience == TURN => {
                Some("does the launcher wait for its turn in a queue?".to_owned())
            }
            Self::Died(..) | Self::Hangs { .. } | Self::TooLong(_) => Some(
                "does a constructor run before `main`, or does the target have a custom harness?"
                    .to_owned(),
            ),
            Self::Version(..) => {
                Some("use memcheck-runtime and cargo-memcheck of the same release".to_owned())
            }
            Self::Start(_, error) if error.kind() == ErrorKind::PermissionDenied => Some(
                "is the target directory mounted noexec? --target-dir or CARGO_TARGET_DIR names \
                 another; if the file has lost its permission, for example in a copy, `chmod +x` \
                 restores it"
                    .to_owned(),
            ),
            Self::Foreign(_, target) => Some(format!(
                "--runner names the program that starts it, such as an emulator of {target}"
            )),
            Self::OtherCheckout(..) => {
                Some("use another --target-dir for each checkout".to_owned())
            }
            Self::StartExtracted(_, error) if error.kind() == ErrorKind::PermissionDenied => Some(
                "is its directory mounted noexec? --extract-to extracts the archive to another"
                    .to_owned(),
            ),
            Self::NotFor(..) | Self::Start(..) | Self::StartExtracted(..) => None,
        }
    }
}

/// Several devices can share the list of an executable.
impl CommandError for Arc<DiscoverError> {
    fn exit_code(&self) -> u8 {
        self.as_ref().exit_code()
    }

    fn hint(&self) -> Option<String> {
        self.as_ref().hint()
    }
}

impl DiscoverError {
    /// The same error about an executable that was extracted from an archive.
    pub(crate) fn of_archive(self) -> Self {
        match self {
            Self::Start(id, error) => Self::StartExtracted(id, error),
            other => other,
        }
    }

    pub(crate) fn is_missing_libraries(&self) -> bool {
        matches!(self, Self::Missing(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_about_noexec_names_a_flag_that_helps() {
        let error = || DiscoverError::Start("app".to_owned(), ErrorKind::PermissionDenied.into());
        let built = error().hint().unwrap();
        assert!(built.contains("--target-dir") && built.contains("chmod +x"), "{built}");
        let extracted = error().of_archive().hint().unwrap();
        assert!(extracted.contains("--extract-to") && !built.contains("--extract-to"));
    }
}
