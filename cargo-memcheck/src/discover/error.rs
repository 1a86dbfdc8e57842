//! Why an executable could not be asked, and what to do about it.

use std::time::Duration;

use memcheck_core::exit;
use memcheck_core::protocol::VERSION;

use crate::error::Expected;
use crate::launcher::TURN;
use crate::libraries::{self, Missing};

/// Why an executable could not be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoverError {
    /// It died.
    #[error("{0}: the test executable died when it was asked for its tests: {1}{2}")]
    Died(String, String, String),
    /// It did not answer.
    #[error("{id}: the test executable did not list its tests within {seconds} s", seconds = .patience.as_secs())]
    Hangs {
        /// The executable.
        id: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// It cannot be started without these libraries.
    #[error("{0}: the test executable cannot be started: {1}")]
    Missing(String, Missing),
    /// It could not be started.
    #[error("{0}: the test executable could not be started: {1}")]
    Start(String, std::io::Error),
    /// It speaks another version of the protocol.
    #[error("{0}: memcheck-runtime speaks version {1} of the protocol, cargo-memcheck {VERSION}")]
    Version(String, u32),
    /// It lacks the device.
    #[error("{0}: the test executable was built without {1}")]
    NotFor(String, &'static str),
}

impl Expected for DiscoverError {
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
                Some("is it the launcher that waits, for its turn in a queue?".to_owned())
            }
            Self::Died(..) | Self::Hangs { .. } => {
                Some("a constructor that runs before `main`, or a harness of its own?".to_owned())
            }
            Self::Version(..) => {
                Some("use memcheck-runtime and cargo-memcheck of the same release".to_owned())
            }
            Self::Start(_, error) if error.kind() == std::io::ErrorKind::PermissionDenied => Some(
                "is its directory mounted noexec? of an archive --extract-to names another"
                    .to_owned(),
            ),
            Self::NotFor(..) | Self::Start(..) => None,
        }
    }
}

impl DiscoverError {
    /// Whether it is for want of libraries.
    pub(crate) fn is_missing_libraries(&self) -> bool {
        matches!(self, Self::Missing(..))
    }
}
